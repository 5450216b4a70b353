"""Element types of JAX's arrays, and numbers."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("jax")

jax = pytest.importorskip("jax")
jnp = jax.numpy


def test_types_of_64_bits(x):
    @cl.function
    def wide(x):
        return cl.zeros(x.shape, "float64"), cl.zeros(x.shape, "int64")

    for _ in range(2):  # findings with these types are not used without them
        with pytest.raises(TypeError, match="jax_enable_x64"):
            wide.jax(x)
        with wide_types():
            assert [one.dtype.name for one in jax.jit(wide.jax)(x)] == ["float64", "int64"]
            assert [one.dtype.name for one in wide.jax(x)] == ["float64", "int64"]


@contextlib.contextmanager
def wide_types():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def test_arrays_of_64_bits(scale):
    scale.backward(lambda grad, factor: scale(grad, factor))
    with wide_types():
        program = jax.jit(lambda x: scale.jax(x, 2.0))
        for x in (jnp.arange(3.0), jnp.arange(3), jnp.arange(3, dtype=jnp.float32)):
            found = program(x)
            assert (found.dtype, found.tolist()) == (x.dtype, [0, 2, 4])
        found = jax.jit(jax.grad(lambda x: scale.jax(x, 2.0).sum()))(jnp.arange(3.0))
        assert (found.dtype, found.tolist()) == ("float64", [2, 2, 2])


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_narrow_floats(scale, x, name):
    scale.backward(lambda grad, factor: scale(grad, factor))
    given = x.astype(name)
    found = jax.jit(lambda x: scale.jax(x, 2.0))(given)
    assert (found.dtype, found.astype("float32").tolist()) == (name, (2 * x).tolist())
    gradient = jax.grad(lambda x: scale.jax(x, 2.0).astype("float32").sum())
    found = jax.jit(gradient)(given)
    assert (found.dtype, found.astype("float32").tolist()) == (name, [2] * 5)


@pytest.mark.parametrize(
    "name",
    ["bool", "uint8", "int16", "uint32", "float16", "complex64", "float8_e5m2",
     "float8_e4m3fnuz", "float8_e5m2fnuz"],
)  # fmt: skip
def test_types_that_arrays_have(name):
    @cl.function
    def zeros(x):
        return cl.zeros_like(x)

    found = jax.jit(zeros.jax)(jnp.ones((2, 3), name))
    assert (found.dtype, found.shape) == (name, (2, 3))
    assert not np.asarray(found).view(np.uint8).any()


@pytest.mark.parametrize("name", ["int4", "uint4", "float8_e4m3b11fnuz", "float8_e3m4"])
def test_types_that_kernels_do_not_have(scale, name):
    if not hasattr(jnp, name):
        pytest.skip(f"needs {name}")
    with pytest.raises(TypeError, match=f"argument x has the element type {name}, which kernels"):
        jax.jit(lambda x: scale.jax(x, 2.0))(jnp.ones(3, name))


def test_keys_of_random_numbers(scale):
    with pytest.raises(TypeError, match="argument x has the element type key"):
        scale.jax(jax.random.key(0), 2.0)


def test_numbers(kernels, scale, x):
    """Python's, and NumPy's as a call of the function has them; those that JAX traces never."""

    @cl.function
    def first(x, n: int, on: bool = True):
        y = cl.zeros((n,), "float32")
        if on:
            kernels["scale<float>"][1, 64](y, x, 1.0, n)
        return y

    for n in (3, np.int64(3), np.uint8(3)):
        assert jax.jit(lambda x, n=n: first.jax(x, n))(x).tolist() == [0, 1, 2]
        assert jax.jit(lambda x, n=n: first(x, n, np.bool_(False)))(x).tolist() == [0, 0, 0]
    assert jax.jit(lambda x: first.jax(x, x.shape[0] - 1))(x).tolist() == [0, 1, 2, 3]
    assert jax.jit(first.jax, static_argnums=1)(x, 2).tolist() == [0, 1]
    assert jax.jit(first.jax, static_argnames="n")(x, n=2).tolist() == [0, 1]
    assert scale.jax(x, np.float32(2)).tolist() == (2 * x).tolist()
    with pytest.raises(TypeError, match=r"n must be a number, .* static_argnames='n'"):
        jax.jit(first.jax)(x, 2)
    with pytest.raises(TypeError, match="argument factor must be a number"):
        jax.grad(lambda factor: scale.jax(x, factor).sum())(2.0)


def test_numbers_that_are_arrays(scale):
    """A result has the type of the array, and not a weak one."""
    scale.backward(lambda grad, factor: scale(grad, factor))
    found = jax.jit(lambda x: scale.jax(x * 2, 2.0))(3.0)
    assert (found.weak_type, found.dtype, float(found)) == (False, "float32", 12)
    assert float(jax.grad(lambda x: scale.jax(x, 2.0))(3.0)) == 2


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_arrays_of_no_elements(scale, bump, shape):
    scale.backward(lambda grad, factor: scale(grad, factor))
    nothing = jnp.zeros(shape)
    assert jax.jit(lambda x: scale.jax(x, 2.0))(nothing).shape == shape
    assert jax.jit(jax.grad(lambda x: scale.jax(x, 2.0).sum()))(nothing).shape == shape
    assert jax.jit(lambda x: bump.jax(x, 2.0))(nothing).shape == shape
    assert jax.vmap(lambda x: scale.jax(x, 2.0))(jnp.zeros((0, 3))).shape == (0, 3)
