"""Bodies that catch, in programs of JAX: both sides, in every order of the calls."""

from __future__ import annotations

import contextlib
import itertools
import math

import numpy as np
import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("jax")

jax = pytest.importorskip("jax")
jnp = jax.numpy

CALLS = ((4, 0), (4, 2), (6, 3), (5, 2), (0, 1))


def rows_of(size, n):
    try:
        rows = size // n
    except ZeroDivisionError:
        rows = 1
    else:
        rows += 1
    finally:
        rows = rows * 2
    with contextlib.suppress(ValueError):
        rows += int(math.sqrt(size - 5))
    return rows


@pytest.fixture
def halves(kernels):
    @cl.function
    def halves(x, n: int):
        y = cl.zeros((rows_of(x.shape[0], n), x.shape[1]), x.dtype)
        try:
            first = x.reshape(2, -1)
        except ValueError:
            first = x
        # A grid that is too small, and a number that does not fit, are known from numbers.
        try:
            kernels["add"][first.shape[0] - 2 + n, 64](y, 1.0, y.size)
        except ValueError:
            kernels["add"][1, 64](y, 5.0, y.size)
        return y

    return halves


def wanted(shape, n):
    blocks = (2 if math.prod(shape) % 2 == 0 else shape[0]) - 2 + n
    rows = rows_of(shape[0], n)
    value = 5.0 if blocks < 1 else 1.0
    return np.full((rows, shape[1]), value, np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("order", list(itertools.permutations(range(len(CALLS))))[::40])
def test_both_sides_in_any_order(halves, order):
    program = jax.jit(lambda x, n: halves.jax(x * 2, n) + 1, static_argnums=1)
    for i in (*order, *order):
        size, n = CALLS[i]
        for shape in ((size, 3), (size, 2)):
            x = jnp.ones(shape)
            found = halves.jax(x, n)
            assert np.array_equal(found, wanted(shape, n))
            assert np.array_equal(program(x, n), wanted(shape, n) + 1)
            shapes = jax.eval_shape(lambda x, n=n: halves.jax(x, n), x)
            assert shapes.shape == found.shape


@pytest.mark.parametrize("first", [3, 4])
def test_a_check_that_is_caught_and_one_that_is_not(kernels, first):
    @cl.function
    def even(x):
        try:
            cl.check(x.shape[0] % 2 == 0, f"odd: {x.shape[0]}")
        except ValueError as error:
            n = len(str(error).partition(" (")[0])
        else:
            n = 0
        cl.check(x.shape[0] < 9, f"too many: {x.shape[0]}")
        y = cl.zeros(2, x.dtype)
        kernels["add"][1, 64](y, float(n), 2)
        return y

    for size in (first, 7 - first, first):
        assert even.jax(jnp.zeros(size)).tolist() == [0.0 if size % 2 == 0 else len("odd: 3")] * 2
    for size in (11, 12):
        with pytest.raises(ValueError, match=f"too many: {size}"):
            jax.jit(even.jax)(jnp.zeros(size))


def test_the_gradient_catches_too(kernels):
    @cl.function
    def shared(x, n: int):
        y = cl.empty_like(x)
        kernels["scale<float>"][1, 64](y, x, 2.0, x.size)
        return y

    @shared.backward
    @cl.function
    def _(grad, n):
        try:
            factor = 12 // n
        except ZeroDivisionError:
            factor = -1
        y = cl.empty_like(grad)
        kernels["scale<float>"][1, 64](y, grad, factor / 1, grad.size)
        return y

    gradient = jax.jit(jax.grad(lambda x, n: shared.jax(x, n).sum()), static_argnums=1)
    for n in (0, 4, 0, 5):
        assert gradient(jnp.ones(3), n).tolist() == [-1.0 if n == 0 else 12 // n] * 3


def test_batches_catch_too(halves):
    for n, size in ((0, 4), (2, 4), (0, 6)):
        batch = jnp.ones((2, size, 3))
        found = jax.vmap(lambda x, n=n: halves.jax(x, n))(batch)
        assert np.array_equal(found, np.stack([wanted((size, 3), n)] * 2))
