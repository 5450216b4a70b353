"""Functions in programs of JAX: what goes in, and what comes out."""

from __future__ import annotations

from collections import namedtuple
from functools import partial

import numpy as np
import pytest

import culaunch as cl
import culaunch.elementwise as ew

pytestmark = pytest.mark.needs("jax")

jax = pytest.importorskip("jax")
jnp = jax.numpy


Pair = namedtuple("Pair", "first second")


def test_a_program_calls_a_function(scale, x):
    program = jax.jit(lambda x: scale.jax(x + 1, 3.0) * 2)
    assert program(x).tolist() == [6, 12, 18, 24, 30]
    assert program(x + 1).tolist() == [12, 18, 24, 30, 36]
    assert program(jnp.ones((2, 3))).tolist() == [[12] * 3] * 2


def test_a_call_at_once(scale, x):
    assert scale.jax(x, 2.0).tolist() == [0, 2, 4, 6, 8]
    assert scale.jax(factor=2.0, x=np.ones(3, np.float32)).tolist() == [2, 2, 2]
    assert scale.jax(x.astype(jnp.int32), 3.0).dtype == jnp.int32
    assert scale.jax(jnp.zeros((0,)), 2.0).shape == (0,)


def test_an_operator_says_what_it_is(scale):
    operator = cl.frameworks.jax_op(scale)
    assert repr(operator) == "<culaunch.frameworks.JaxOperator scale(x, factor: float)>"
    assert isinstance(scale.jax, cl.frameworks.JaxOperator)
    assert operator.__name__ == "scale"


def test_shapes_alone(scale, x):
    found = jax.eval_shape(lambda x: scale.jax(x, 2.0), jax.ShapeDtypeStruct((7, 2), "float32"))
    assert (found.shape, found.dtype) == ((7, 2), "float32")


def test_results_of_every_form(kernels, x):
    @cl.function
    def several(x, form: str):
        first, scratch, second = cl.empty_like(x), cl.empty_like(x), cl.empty_like(x)
        run = kernels["scale<float>"][1, 64]
        run(first, x, 2.0, x.size)
        run(scratch, first, 2.0, x.size)
        run(second, scratch, 2.0, x.size)
        if form == "dict":
            return {"second": second, "first": first, "n": x.size, "none": None}
        if form == "list":
            return [second, [first, 1.5], x]
        if form == "pair":
            return Pair(second, first)
        if form == "view":
            return scratch.view(-1, 1), second[1:3]
        return second, first, second

    twice, eightfold = (x * 2).tolist(), (x * 8).tolist()
    call = partial(jax.jit, static_argnums=1)(several.jax)
    found = several.jax(x, "dict")
    assert (found["second"].tolist(), found["first"].tolist()) == (eightfold, twice)
    assert (found["n"], found["none"], list(found)) == (5, None, ["second", "first", "n", "none"])
    second, (first, number), same = several.jax(x, "list")
    assert (second.tolist(), first.tolist(), number) == (eightfold, twice, 1.5)
    assert same is x
    pair = call(x, "pair")
    assert (pair.second.tolist(), pair.first.tolist()) == (twice, eightfold)
    column, part = call(x, "view")
    assert column.tolist() == [[one] for one in (x * 4).tolist()]
    assert part.tolist() == eightfold[1:3]
    assert [one.tolist() for one in call(x, "tuple")] == [eightfold, twice, eightfold]


def test_what_is_written_is_returned(kernels, x):
    @cl.function
    def bump(cache, value: float):
        kernels["add"][1, 64](cache, value, cache.size)

    @cl.function
    def append(x, cache, other):
        kernels["add"][1, 64](cache, 1.0, cache.size)
        kernels["add"][1, 64](other, 2.0, other.size)
        y = cl.empty_like(x)
        kernels["scale<float>"][1, 64](y, x, 2.0, x.size)
        return y, other

    assert bump.jax(x, 1.0).tolist() == [1, 2, 3, 4, 5]
    assert jax.jit(lambda x: (x, bump.jax(x, 2.0), x))(x)[1].tolist() == [2, 3, 4, 5, 6]
    assert x.tolist() == [0, 1, 2, 3, 4]
    found = jax.jit(append.jax)(x, x, jnp.zeros(2))
    assert (found.result[0].tolist(), found.result[1].tolist()) == ([0, 2, 4, 6, 8], [2, 2])
    assert found.cache.tolist() == [1, 2, 3, 4, 5]
    assert type(found).__name__ == "append_results"


def test_a_donated_array_is_written_in_place(kernels):
    @cl.function
    def bump(cache):
        kernels["add"][1, 64](cache, 1.0, cache.size)
        return cache

    cache = jnp.zeros(64)
    before = cache.unsafe_buffer_pointer()
    after = jax.jit(bump.jax, donate_argnums=0)(cache)
    assert after.tolist() == [1] * 64
    assert after.unsafe_buffer_pointer() == before
    assert cache.is_deleted()


def test_lists_of_arrays_and_names(kernels, x):
    @cl.function
    def total(arrays, *, factor: float = 1.0):
        y = cl.zeros_like(arrays[0])
        for one in arrays:
            part = cl.empty_like(one)
            kernels["scale<float>"][1, 64](part, one, factor, one.size)
            kernels["add"][1, 64](y, part.size * 1.0, y.size)
        return y

    assert total.jax([x, x], factor=2.0).tolist() == [10] * 5
    assert jax.jit(lambda *xs: total.jax(xs))(x, x, x).tolist() == [15] * 5


def test_a_fused_function_in_the_body(x):
    @ew.fuse
    def fused(a, b):
        return a * b + 1

    @cl.function
    def body(a, b):
        return fused(a, b)

    assert jax.jit(body.jax)(x, x).tolist() == [1, 2, 5, 10, 17]


def test_a_function_is_called_where_jax_traces(kernels, scale, x):
    """As its operation: with names, lists, arrays of NumPy beside what is traced."""

    @cl.function
    def total(arrays, *, factor: float = 1.0):
        y = cl.zeros_like(arrays[0])
        for one in arrays:
            kernels["add"][1, 64](y, one.size * factor, y.size)
        return {"total": y, "n": len(arrays)}

    @cl.function
    def bump(cache, other):
        kernels["add"][1, 64](cache, 1.0, cache.size)

    assert jax.jit(lambda x: scale(x + 1, 3.0) * 2)(x).tolist() == [6, 12, 18, 24, 30]
    assert jax.jit(lambda x: scale(factor=2.0, x=x))(x).tolist() == [0, 2, 4, 6, 8]
    assert jax.vmap(lambda x: scale(x, 2.0))(jnp.ones((2, 3))).tolist() == [[2] * 3] * 2
    found = jax.jit(lambda x: total([np.ones(5, np.float32), x], factor=2.0))(x)
    assert (found["total"].tolist(), int(found["n"])) == ([20] * 5, 2)
    assert jax.eval_shape(lambda x: scale(x, 2.0), x).shape == (5,)
    with pytest.raises(TypeError, match=r"bump writes cache, but JAX traces .* call bump\.jax"):
        jax.jit(lambda x: bump(x, x))(x)
    with pytest.raises(ValueError, match="x must have one or two dimensions"):
        jax.jit(lambda x: scale(x, 2.0))(jnp.zeros((1, 1, 1)))
    with pytest.raises(TypeError, match=r"factor must be a number, .* static_argnames='factor'"):
        jax.jit(lambda x, factor: scale(x, factor))(x, 2.0)
    # Errors of values that JAX does not trace are unchanged.
    with pytest.raises(TypeError, match="factor must be a float"):
        scale(x, x)


def test_a_function_of_a_library(scale, tmp_path, x):
    scale(np.ones(3, np.float32), 2.0)
    cl.ship.save([scale], tmp_path / "scale.culib")
    library = cl.ship.load_library(tmp_path / "scale.culib")
    assert jax.jit(lambda x: library.scale.jax(x, 3.0))(x).tolist() == (x * 3).tolist()
    assert jax.jit(lambda x: library.scale(x, 3.0))(x).tolist() == (x * 3).tolist()
