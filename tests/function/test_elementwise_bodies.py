"""Fused functions in a body: shapes, types and memory order are those of a call."""

import bodies
import numpy as np
import pytest

import culaunch as cl
from culaunch import elementwise as ew

pytestmark = pytest.mark.usefixtures("emulated")


@ew.fuse
def scaled(x, y, s):
    return x * s + y


@ew.fuse
def both_ways(x, y):
    return x + y, x > y


def both(function, *args):
    """Call it natively, and as plain Python: the same bits in the same places."""
    return bodies.both(function, *args, is_same=same_places)


def same_places(result, expected):
    for one, other in zip(flat(result), flat(expected), strict=True):
        np.testing.assert_array_equal(one, other)
        assert (one.dtype, one.strides) == (other.dtype, other.strides)


def flat(result):
    return result if isinstance(result, tuple) else (result,)


def an_array(shape, dtype="float32", order="C"):
    size = int(np.prod(shape))
    return np.asarray((np.arange(size) % 7).reshape(shape), dtype=dtype, order=order)


@cl.function
def chained(x, y, s: float):
    z = scaled(x, y, s)
    total, is_more = both_ways(z, y)
    return scaled(total, x, 2), is_more, z.shape[0] * 2


@pytest.mark.slow
def test_results_are_arrays_that_a_body_goes_on_with():
    for x, y in (
        (an_array((4, 6)), an_array((4, 6))),
        (an_array((4, 6)), an_array((6,))),
        (an_array((4, 1)), an_array((4, 6))),
        (an_array((1, 6)), an_array((5, 1))),
        (an_array((0, 6)), an_array((6,))),
        (an_array((1, 1)), an_array((1, 1))),
        (an_array((4, 6), order="F"), an_array((4, 6))),
        (an_array((4, 6)), an_array((4, 6), order="F")),
        (an_array((3, 4, 5)).transpose(2, 0, 1), an_array((5, 3, 4))),
        (an_array((8, 6))[::2, ::-1], an_array((4, 6))),
    ):
        result, is_more, size = both_but_number(chained, x, y, 1.5)
        z = scaled(x, y, 1.5)
        total, more = both_ways(z, y)
        expected = scaled(total, x, 2)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(is_more, more)
        assert (result.strides, is_more.strides) == (expected.strides, more.strides)
        assert size == 2 * z.shape[0]


def both_but_number(function, *args):
    @cl.function
    def arrays(x, y, s: float):
        one, other, _ = function(x, y, s)
        return one, other

    both(arrays, *args)
    return function(*args)


@pytest.mark.parametrize(
    ("a", "b", "s"),
    [
        ("float32", "float64", 2),
        ("int32", "int8", -3),
        ("uint8", "int16", 2),
        ("float16",) * 2 + (0.5,),
    ],
)
def test_types_are_promoted_as_in_a_call(a, b, s):
    @cl.function
    def promoted(x, y, s):
        return scaled(x, y, s)

    x, y = an_array((4, 4), a), an_array((4, 4), b)
    result = both(promoted, x, y, s)
    np.testing.assert_array_equal(result, scaled(x, y, s))
    assert result.dtype == scaled(x, y, s).dtype


def test_outputs_may_be_given():
    @cl.function
    def into(x, y, out):
        both_ways(x, y, out=(out[0], out[1]))
        return scaled(x, y, x.shape[0], out=out[0])

    x, y = an_array((4, 4)), an_array((4, 4))
    outs = [np.zeros((4, 4), np.float32), np.zeros((4, 4), bool)]
    both(into, x, y, outs)
    np.testing.assert_array_equal(outs[0], x * 4 + y)
    np.testing.assert_array_equal(outs[1], x > y)
    with pytest.raises(ValueError, match=r"out\[0\] must have shape \(4, 4\) \(got \(4, 3\)\)"):
        into(x, y, [np.zeros((4, 3), np.float32), outs[1]])
    with pytest.raises(TypeError, match=r"out\[1\] must be bool, the type of the result"):
        into(x, y, [outs[0], outs[0]])


def test_arrays_and_numbers_that_a_body_closes_over():
    held, number = an_array((6,)), np.float32(0.25)

    @cl.function
    def closed(x):
        return scaled(x, held, number)

    x = an_array((4, 6))
    np.testing.assert_array_equal(both(closed, x), x * number + held)


def test_what_does_not_go_together_is_refused():
    @cl.function
    def wrong(x, y, s):
        return scaled(x, y, s)

    with pytest.raises(ValueError, match=r"argument y of shape \(1, 3\) does not broadcast with"):
        wrong(an_array((4, 4)), an_array((3,)), 1)
    with pytest.raises(TypeError, match="argument s must be an array, a Python number"):
        wrong(an_array((4,)), an_array((4,)), "x")
    with pytest.raises(TypeError, match=r"scaled\(x, y, s\): missing"):
        wrong_count(an_array((4,)))


@cl.function
def wrong_count(x):
    return scaled(x)


def test_a_raw_argument_must_be_contiguous():
    taken = ew.kernel("raw T table, int32 at", "T y", "y = table[at]", "taken")

    @cl.function
    def looked_up(table, at):
        return taken(table, at)

    table, i = an_array((7,)), an_array((4, 3), "int32")
    np.testing.assert_array_equal(both(looked_up, table, i), table[i])
    with pytest.raises(ValueError, match="table is raw and must be contiguous"):
        looked_up(an_array((14,))[::2], i)


def test_functions_are_inlined():
    @cl.function
    def inner(x, s: float = 2.0):
        return scaled(x, x, s)

    @cl.function
    def outer(x):
        return inner(inner(x), s=x.shape[0] * 0.5)

    x = an_array((4,))
    np.testing.assert_array_equal(both(outer, x), x * 9)
