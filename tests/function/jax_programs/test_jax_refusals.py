"""Errors of functions in programs of JAX."""

from __future__ import annotations

import contextlib
import importlib
import re

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("jax")

jax = pytest.importorskip("jax")
with contextlib.suppress(ImportError):  # jax imports it itself in newer versions
    importlib.import_module("jax.export")
jnp = jax.numpy


def test_errors_come_when_a_program_is_traced(scale, x):
    with pytest.raises(ValueError, match="x must have one or two dimensions"):
        jax.jit(lambda x: scale.jax(x, 2.0))(jnp.zeros((1, 1, 1)))
    with pytest.raises(cl.KernelNotFoundError, match=re.escape("scale<signed char>")):
        scale.jax(x.astype(jnp.int8), 2.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'factor'"):
        scale.jax(x)
    with pytest.raises(TypeError, match=r"factor must be a number, .* static_argnames='factor'"):
        jax.jit(scale.jax)(x, 2.0)


def test_annotated_arguments(kernels, x):
    @cl.function
    def both(a: cl.Array("float32", "n"), b: cl.Array(cl.dtype_of("a"), "n")):
        return cl.empty_like(a)

    with pytest.raises(ValueError, match="b has 4 elements along n, but a has 5"):
        jax.jit(both.jax)(x, x[1:])
    with pytest.raises(TypeError, match=r"a must be float32|float32"):
        both.jax(x.astype(jnp.float16), x)


def test_what_jax_cannot_have(kernels, x):
    @cl.function
    def double(x):
        return cl.empty(x.shape, "float64")

    @cl.function
    def strided(x):
        return cl.zeros_like(x)[::2]

    with pytest.raises(TypeError, match=r"returns float64, .*jax_enable_x64"):
        double.jax(x)
    with pytest.raises(TypeError, match=r"returns a view with strides \(2,\)"):
        strided.jax(x)
    with pytest.raises(TypeError, match="function must be a function of culaunch"):
        cl.frameworks.jax_op(len)
    with pytest.raises(ValueError, match="vmap must be one of 'sequential'"):
        cl.frameworks.jax_op(double, vmap="fast")
    shape = jax.export.symbolic_shape("n")
    with pytest.raises(TypeError, match="export a program for fixed shapes"):
        jax.eval_shape(strided.jax, jax.ShapeDtypeStruct(shape, "float32"))


UNTOLD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry bump(.param .u64 y) {
  .reg .b64 %p<3>;
  .reg .f32 %f<3>;
  ld.param.u64 %p1, [y];
  cvta.to.global.u64 %p2, %p1;
  ld.global.f32 %f1, [%p2];
  add.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%p2], %f2;
  ret;
}
"""


def test_what_kernels_do_not_say(kernels, x):
    bump = cl.load(UNTOLD.encode())["bump"]

    @cl.function
    def first(x):
        bump[1, 1](x)

    with pytest.raises(TypeError, match=r"do not show whether they write x, .*mutates="):
        first.jax(x)
    assert cl.function(mutates=["x"])(first.__wrapped__).jax(x).tolist() == [1, 1, 2, 3, 4]
