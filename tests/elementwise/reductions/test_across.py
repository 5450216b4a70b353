"""Gradients of weights: reductions along the rows, in the pass over the rows."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_texts import gradient_of, kernels

from culaunch import elementwise as ew
from culaunch._elementwise.reductions import call


def values(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def layer_norm(x, weight, bias):
    apart = x - ew.mean(x, axis=-1, keepdims=True)
    scale = ew.rsqrt(ew.mean(apart * apart, axis=-1, keepdims=True) + 1e-5)
    return apart * scale * weight + bias


@pytest.fixture
def one_multiprocessor(monkeypatch):
    """Take the number of rows that a device with one multiprocessor would need."""
    choices = []
    real = call.choose_across

    def choose_across(layout, sizes, registers, count):
        choices.append(real(layout, sizes, registers, 1))
        return choices[-1]

    monkeypatch.setattr(call, "choose_across", choose_across)
    return choices


def expected(x, weight, grad):
    """Compute the gradients of a layer norm in double precision."""
    x, weight, grad = (one.astype(np.float64) for one in (x, weight, grad))
    rows = tuple(range(x.ndim - 1))
    apart = x - x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt((apart**2).mean(-1, keepdims=True) + 1e-5)
    normal, inner = apart * scale, grad * weight
    mean = inner.mean(-1, keepdims=True)
    dx = scale * (inner - mean - normal * (inner * normal).mean(-1, keepdims=True))
    return dx, (grad * normal).sum(rows), grad.sum(rows)


# Threads of a row: parts of a warp, a warp, and several warps; with elements and threads to spare.
SHAPES = [
    (700, 128), (559, 40), (19, 29, 36), (131, 260), (530, 129), (41, 1100), (37, 2052), (21, 6000),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_the_values(shape, one_multiprocessor):
    x, grad = values(0, *shape) + 2, values(1, *shape)
    weight, bias = values(2, shape[-1]), values(3, shape[-1])
    gradient = gradient_of(layer_norm)
    got = gradient(grad, x, weight, bias)
    assert [choice is not None for choice in one_multiprocessor] == [True]
    for one, right in zip(got, expected(x, weight, grad), strict=True):
        assert one.shape == right.shape
        np.testing.assert_allclose(one, right, rtol=1e-4, atol=1e-4)
    again = gradient(grad, x, weight, bias)
    assert all(np.array_equal(one, two) for one, two in zip(got, again, strict=True))


@pytest.mark.parametrize("phases", [1, 2])
def test_blocks_go_from_row_to_row(phases, one_multiprocessor):
    """A row's partial results in shared memory must not change before all warps read them."""

    def f(x, weight):
        y = x / (1 + ew.sum(x * x, axis=-1, keepdims=True))
        if phases == 2:
            y = y - ew.max(y, axis=-1, keepdims=True)
        return y, ew.sum(x * weight, axis=0)

    x, weight = values(0, 300, 516), values(1, 300, 1)
    y, total = ew.fuse(f)(x, weight)
    assert one_multiprocessor[0].regime.team > 32
    right = x / (1 + (x * x).sum(-1, keepdims=True, dtype=np.float64))
    if phases == 2:
        right = right - right.max(-1, keepdims=True)
    np.testing.assert_allclose(y, right, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total, (x * weight).sum(0, dtype=np.float64), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_types(dtype, one_multiprocessor):
    x, grad = values(0, 300, 72).astype(dtype), values(1, 300, 72).astype(dtype)
    weight, bias = values(2, 72).astype(dtype), values(3, 72).astype(dtype)
    got = gradient_of(layer_norm)(grad, x, weight, bias)
    assert one_multiprocessor[0] is not None
    tolerance = 1e-2 if dtype == "float16" else 1e-9
    for one, right in zip(got, expected(x, weight, grad), strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, right, rtol=tolerance, atol=tolerance * 10)


def test_two_kernels_read_the_arrays_once(one_multiprocessor):
    x, weight = values(0, 700, 128), values(2, 128)
    gradient = gradient_of(layer_norm)
    rows, columns = kernels(gradient, x, x, weight, weight)
    assert rows.regime.blocks
    assert [one.name for one in rows.parameters if hasattr(one, "name")] == ["y0", "x0", "x1", "x2"]
    assert [one.name for one in columns.parameters if hasattr(one, "name")] == ["y1", "y2"]
    assert "_across" in rows.name
    assert one_multiprocessor


def test_arrays_common_to_all_rows_are_loaded_once(one_multiprocessor):
    x, weight = values(0, 700, 128), values(2, 128)
    text = kernels(gradient_of(layer_norm), x, x, weight, weight)[0]
    before, _, rows = text.source.partition("for (long long first = ")
    assert before.count("x2_pack[j] = *reinterpret_cast") == 1
    assert "x2_pack[j] = *" not in rows


def test_the_next_row_is_on_its_way_while_a_row_is_reduced(one_multiprocessor):
    gradient = gradient_of(layer_norm)
    # Bytes of shared memory for arrays that fit in 32 KiB; none without 16-byte loads.
    cases = ((128, 32768, 2), (1100, 16384, 2), (8192, 32768, 1), (129, 0, 0))
    for columns, shared, arrays in cases:
        x, weight = values(0, 700, columns), values(2, columns)
        text = kernels(gradient, x, x, weight, weight)[0]
        assert text.regime.blocks
        assert text.shared == shared
        assert ("fetch(first + " in text.source) == bool(shared)
        assert text.source.count("copy_async(&") == arrays


def test_few_rows_keep_kernels_of_their_own():
    x, weight = values(0, 64, 128), values(2, 128)
    texts = kernels(gradient_of(layer_norm), x, x, weight, weight)
    assert not any(text.regime.blocks for text in texts)
    # The sums of both weights are one pass, although one of them could start earlier.
    assert len([text for text in texts if text.regime.kind == "column"]) in (1, 2)
    assert sum("y2" in [getattr(one, "name", "") for one in text.parameters] for text in texts) == 1


def argmax_of_columns(x):
    return x - ew.mean(x, axis=1, keepdims=True), ew.argmax(x, axis=0)


def sum_that_is_read(x):
    total = ew.sum(x, axis=0)
    return x - ew.mean(x, axis=1, keepdims=True), ew.sum(total * total)


def result_with_an_argument(x, weight):
    return x - ew.mean(x, axis=1, keepdims=True), ew.sum(x, axis=0) * weight


@pytest.mark.parametrize("function", [argmax_of_columns, sum_that_is_read, result_with_an_argument])
def test_what_cannot_go_along_has_a_kernel_of_its_own(function, one_multiprocessor):
    x, weight = values(0, 700, 128), values(1, 128)
    arguments = (x, weight) if function is result_with_an_argument else (x,)
    texts = kernels(ew.fuse(function), *arguments)
    assert not any(text.regime.blocks for text in texts)
    assert not one_multiprocessor
    y, other = ew.fuse(function)(*arguments)
    np.testing.assert_allclose(y, x - x.mean(1, keepdims=True), rtol=1e-5, atol=1e-5)
    right = {
        argmax_of_columns: lambda: x.argmax(0),
        sum_that_is_read: lambda: (x.sum(0) ** 2).sum(),
        result_with_an_argument: lambda: x.sum(0) * weight,
    }[function]()
    np.testing.assert_allclose(other, right, rtol=1e-3, atol=1e-3)
