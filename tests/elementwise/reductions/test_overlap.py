"""``out=`` of a function that reduces may not share memory that its kernels still read."""

from __future__ import annotations

import numpy as np
import pytest

from culaunch import elementwise as ew


@ew.fuse
def softmax(x):
    e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
    return e / ew.sum(e, axis=-1, keepdims=True)


@ew.fuse
def total(x):
    return ew.sum(x, axis=-1)


@ew.fuse
def centered(x):
    return x - ew.mean(x, axis=0, keepdims=True) - ew.mean(x, axis=1, keepdims=True)


@ew.fuse
def moments(x):
    return ew.sum(x, axis=-1), ew.sum(x * x, axis=-1)


def values(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("columns", [5, 40, 3000])
def test_one_group_of_reductions_may_run_in_place(columns):
    x = values(6, columns)
    wanted = softmax(x)
    for _ in range(2):
        again = x.copy()
        assert softmax(again, out=again) is again
        np.testing.assert_array_equal(again, wanted)


def test_a_result_within_the_argument_is_refused():
    x = values(40, 40)
    for out in (x[0], x[:, 0], x.reshape(-1)[39 * 40 :]):
        before = x.copy()
        with pytest.raises(ValueError, match=r"total: out overlaps argument x, .* own memory"):
            total(x, out=out)
        np.testing.assert_array_equal(x, before)


def test_another_view_of_the_argument_is_refused():
    x = values(8, 8)
    for out in (x.T, x[::-1]):
        with pytest.raises(ValueError, match="softmax: out overlaps argument x"):
            softmax(x, out=out)
    rows = values(9, 8)
    with pytest.raises(ValueError, match="softmax: out overlaps argument x"):
        softmax(rows[:-1], out=rows[1:])


def test_two_groups_of_reductions_may_not_run_in_place():
    x = values(8, 8)
    wanted = centered(x)
    with pytest.raises(ValueError, match="centered: out overlaps argument x"):
        centered(x, out=x)
    out = np.empty_like(x)
    centered(x, out=out)
    np.testing.assert_array_equal(out, wanted)


def test_interleaved_memory_does_not_overlap():
    both = values(6, 41)
    x, out = both[:, 1:], both[:, 0]
    wanted = x.sum(-1)
    total(x, out=out)
    np.testing.assert_allclose(both[:, 0], wanted, rtol=1e-5)


def test_outputs_have_their_own_memory():
    x, out = values(6, 5), values(7)
    with pytest.raises(ValueError, match=r"moments: out\[0\] overlaps out\[1\]"):
        moments(x, out=(out[:-1], out[1:]))
    with pytest.raises(ValueError, match=r"moments: out\[1\] overlaps argument x"):
        moments(x, out=(out[:-1], x[:, 0]))


def test_nothing_overlaps_an_empty_array():
    x = np.empty((0, 5), np.float32)
    assert total(x, out=x[:, 0]).shape == (0,)


def test_other_mistakes_keep_their_message():
    x = values(4, 4)
    with pytest.raises(TypeError, match="out must be"):
        total(x, out="text")
    with pytest.raises(ValueError, match="shape"):
        total(x, out=x)
