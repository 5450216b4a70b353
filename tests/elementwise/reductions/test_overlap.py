"""``out=`` of a function that reduces may not share memory that its kernels still read."""

from __future__ import annotations

import numpy as np
import pytest

import culaunch as cl
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


# ---- in the body of a function


@cl.function
def body(x, out):
    total(x, out=out)


@cl.function
def softmax_body(x, out):
    return softmax(x, out=out)


def outcome(function, x, out):
    """Return what a call says about overlaps, without the place in a body."""
    try:
        function(x, out)
    except ValueError as error:
        return str(error).partition(" (at ")[0]
    return "apart"


@pytest.mark.parametrize("seed", range(4))
def test_a_body_finds_the_overlaps_that_a_call_finds(seed):
    random = np.random.default_rng(seed)
    strided = np.lib.stride_tricks.as_strided
    memory = np.zeros(400, np.float32)
    found = set()
    for _ in range(60):
        rows, columns = random.choice([2, 3, 5]), random.choice([2, 4])
        row, column = random.choice([1, 2, 4, 8, -8, 20]), random.choice([1, 2, 3, -1, 20])
        step = random.choice([1, 2, 4, 7, 8, 20, -1, -4])
        first, other = random.integers(100, 250, 2)
        x = strided(memory[first:], (rows, columns), (row * 4, column * 4))
        out = strided(memory[other:], (rows,), (step * 4,))
        found.add(wanted := outcome(lambda x, out: total(x, out=out), x, out))
        assert outcome(body, x, out) == wanted
    assert len(found) == 2


def test_a_body_may_run_one_group_in_place():
    x = values(6, 40)
    wanted = softmax(x)
    for _ in range(2):
        again = x.copy()
        softmax_body(again, again)
        np.testing.assert_array_equal(again, wanted)
        for out in (x[::-1], x[:, ::-1]):
            assert "softmax: out overlaps argument x" in outcome(softmax_body, x, out)
    assert outcome(softmax_body, x[:0], x[:0]) == "apart"


def test_views_of_one_argument_and_allocations_of_a_body():
    @cl.function
    def first_column(x):
        total(x[:, 1:], out=x[:, 0])

    @cl.function
    def first_row(x):
        total(x, out=x[0])

    @cl.function
    def twice(x):
        made = cl.empty_like(x)
        softmax(x, out=made)
        softmax(made, out=made)
        return made

    @cl.function
    def two_groups(x):
        made = cl.empty_like(x)
        softmax(x, out=made)
        centered(made, out=made)

    for _ in range(2):
        x = values(6, 41)
        wanted = x[:, 1:].sum(-1)
        first_column(x)
        np.testing.assert_allclose(x[:, 0], wanted, rtol=1e-5)
        np.testing.assert_array_equal(twice(x), softmax(softmax(x)))
        for function, name in ((first_row, "total"), (two_groups, "centered")):
            with pytest.raises(ValueError, match=f"{name}: out overlaps argument x"):
                function(values(8, 8))


def test_plain_python_finds_them_too():
    x = values(6, 40)
    with cl.function_debugging():
        assert "total: out overlaps argument x" in outcome(body, x, x[:, 0])
        assert outcome(body, x[:, 1:], x[:, 0]) == "apart"


def test_a_kind_without_a_call_has_the_check(tmp_path):
    @cl.function
    def saved(x, out):
        total(x, out=out)

    rows, row = cl.Array("float32", "b n"), cl.Array("float32", "b")
    saved.specialize(x=rows, out=row, both_sides=False)
    x = values(2, 4096)
    saved(x, values(2))
    cl.ship.save([saved], tmp_path / "total.culib")
    library = cl.ship.load_library(tmp_path / "total.culib")
    assert "total: out overlaps argument x" in outcome(library.saved, x, x[:, 0])
    out = np.zeros(2, np.float32)
    assert outcome(library.saved, x, out) == "apart"
    np.testing.assert_allclose(out, x.sum(-1), rtol=1e-3)
