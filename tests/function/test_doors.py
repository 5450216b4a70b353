"""Where what stands for a number or an array becomes something else: right data, or an error."""

from __future__ import annotations

import json
import math
import re
from typing import NamedTuple

import numpy as np
import pytest

import culaunch as cl
import culaunch.elementwise as ew

TABLE = np.arange(3, dtype=np.float32)


class Pair(NamedTuple):
    first: object
    second: object


def test_texts_have_the_numbers_of_their_call(emulated):
    def texts(n: int, f: float):
        return (
            repr(n), f"{n!r}", str((n, 2)), f"{(n,)}", f"{n:>4}|{f}", "%r %s %d" % (n, f, n),  # noqa: UP031
            repr([n, {"k": f}]), ascii(n), repr(n > 3), repr(Pair(n, f)),
        )  # fmt: skip

    function = cl.function(texts)
    for n, f in ((3, 1.5), (5, 1.5), (3, -0.0), (5, math.inf)):
        assert function(n, f) == texts(n, f)


def test_a_key_that_is_a_text_is_of_its_call(emulated):
    names = {"3": "three", "5": "five"}

    @cl.function
    def named(n: int):
        return names.get(repr(n), "many"), names.get(f"{n}")

    assert [named(n) for n in (3, 5, 4, 3)] == [
        ("three", "three"), ("five", "five"), ("many", None), ("three", "three")
    ]  # fmt: skip


def test_a_number_that_was_compared_is_known_when_it_becomes_a_text(emulated):
    @cl.function
    def shown(n: int, f: float):
        return f"{n} {f}" if n == 3 else "-"

    calls = ((3, 1.5), (4, 1.5), (3, 2.5), (3, math.nan), (3, 0.0), (3, -0.0), (4, 0.0))
    wanted = [f"{n} {f}" if n == 3 else "-" for n, f in calls]
    for _ in range(2):
        assert [shown(*one) for one in calls] == wanted


def test_a_message_has_the_numbers_of_the_failing_call_on_one_path(emulated):
    @cl.function
    def checked(x, n: int):
        message = f"n is {n!r}"
        cl.check(x.ndim == 2 and x.shape[0] < 5, f"bad shape {x.shape}")
        cl.check(n < 9, message)
        cl.check(n != 4, "{} is {!r}".format("n", n))
        if n == 7:
            raise ValueError(f"bad {x.shape} and {n!r}")
        return x.shape

    for rows in (2, 3, 4):
        assert checked(np.zeros((rows, 9)), 1) == (rows, 9)
    assert ", 1 path\n" in checked.explain(np.zeros((2, 2)), 2)
    for shape, n, text in (
        ((7, 9), 1, "bad shape (7, 9) ("), ((8, 1), 1, "bad shape (8, 1) ("),
        ((2, 1), 10, "n is 10 ("), ((2, 1), 11, "n is 11 ("), ((2, 1), 4, "n is 4 ("),
        ((3, 1), 7, "bad (3, 1) and 7"), ((4, 1), 7, "bad (4, 1) and 7"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=re.escape(text)):
            checked(np.zeros(shape), n)


def test_a_text_is_at_one_place_however_often_it_was_made(emulated):
    """Python 3.11 makes a call of C one instruction earlier once it has run some times."""

    def halved(n: int, f: float):
        for _ in range(2):
            cl.check(n < 9, "f is " + repr([3, f]))
            f = n / f if f else 1.0
        return f

    function = cl.function(halved)
    calls = [(-2, 1.5), (1, math.nan), (0, 4.0), (-2, 1.5), (3, -0.5), (4, 8.0), (-2, 1.5)]
    for n, f in (*calls, *calls):
        assert repr(function(n, f)) == repr(halved(n, f))
    assert function.explain(1, 2.0).count("check ") == 2
    with pytest.raises(ValueError, match=r"f is \[3, 7.5\]"):
        function(9, 7.5)


def test_explained_math_has_all_its_arguments(emulated):
    """The first register holds the first argument, which may be the second of a function."""

    @cl.function
    def function(n: float, m: float):
        try:
            return math.fmod(m, n) + math.sqrt(n) + m**n
        except ValueError:
            return math.atan2(m, n)

    for n, m in ((2.0, 3.0), (-2.0, 3.0), (0.0, 3.0)):
        fails = n <= 0
        expected = math.atan2(m, n) if fails else math.fmod(m, n) + math.sqrt(n) + m**n
        assert function(n, m) == expected
    text = function.explain(2.0, 3.0)
    for call in ("fmod(m, n) raises ValueError", "sqrt(n) raises ValueError", "atan2(m, n)",
                 "m ** n raises OverflowError"):  # fmt: skip
        assert call in text


def test_powers_with_a_modulus_are_pythons(emulated):
    function = cl.function(lambda n, m: pow(n, 3, m))
    for n, m in ((2, 5), (4, 7), (-4, 7), (2, 5), (9, 10)):
        assert function(n, m) == pow(n, 3, m)


def test_a_new_message_leaves_other_paths_alone(emulated):
    def checked(x, n: int, f: float):
        for size in x.shape:
            cl.check(size, "n is " + str(n > 1), IndexError)
        return repr([n, f])

    function = cl.function(checked)
    calls = [(3, -0.0), (3, 0.0), (2, 1e300), (3, 0.0), (0, -0.0), (3, -0.0)]
    for n, f in (*calls, *calls):
        x = np.zeros((1, 2))
        assert function(x, n, f) == repr([n, f])


def test_a_text_is_data_also_where_a_message_has_it(emulated):
    @cl.function
    def both(n: int):
        text = f"{n}"
        found = {"3": 30}.get(text, 0)
        cl.check(n < 9, f"n is {text}")
        cl.check(f"{n}" != "8", f"n is {n}")
        return found

    assert [both(n) for n in (5, 3, 4, 3)] == [0, 30, 0, 30]
    with pytest.raises(ValueError, match="n is 8"):
        both(8)


def test_a_number_is_given_to_c_or_refused_with_the_line(emulated):
    @cl.function
    def array(n: int):
        found = np.array([n, 2]) * np.array(n)
        return int(found[0]), [10, 11, 12][n], "a" * n, n.to_bytes(2, "big"), round(n, -1)

    assert [array(n) for n in (1, 2, 1)] == [
        (n * n, 10 + n, "a" * n, n.to_bytes(2, "big"), 0) for n in (1, 2, 1)
    ]

    @cl.function
    def written(n: int):
        return json.dumps(n)

    with pytest.raises(TypeError, match=r"test_doors.py:\d+: `return json.dumps\(n\)`: Object of"):
        written(3)


def test_an_array_that_a_body_made_is_not_returned(emulated):
    @cl.function
    def made(n: int):
        return {"a": [np.array(n)]}

    @cl.function
    def held():
        return [TABLE, TABLE[:0] if False else TABLE]

    with pytest.raises(TypeError, match="made returns an array that its body made"):
        made(3)
    assert held()[0] is TABLE


def test_addresses_of_one_array_are_compared(emulated):
    @cl.function
    def places(x, i: int):
        return x[i].data_ptr() - x.data_ptr(), x.data_ptr() == x[i].data_ptr()

    @cl.function
    def others(x, y):
        return x.data_ptr() == y.data_ptr()

    @cl.function
    def shown(x):
        return f"{x.data_ptr()}"

    x = np.zeros((3, 2), np.float32)
    for i in (1, 0, 2):
        assert places(x, i) == (8 * i, i == 0)
    with pytest.raises(TypeError, match="the addresses of x and y cannot be compared"):
        others(x, x)
    with pytest.raises(TypeError, match="the address of x is known only when a call runs"):
        shown(x)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (5, 1), (2, 1, 3, 2)])
def test_views_are_those_of_numpy_and_torch(emulated, shape):
    torch = pytest.importorskip("torch")

    @cl.function
    def views(x):
        return x.T, x.mT, x.transpose(), x.swapaxes(0, -1), x.transpose(tuple(range(x.ndim)))

    @cl.function
    def swapped(x):
        return x.transpose(1, 0), x.permute(*reversed(range(x.ndim))), x.transpose(-1, 0)

    x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    last = x.swapaxes(-1, -2)
    for found, wanted in zip(views(x), (x.T, last, x.T, x.swapaxes(0, -1), x), strict=True):
        assert (found.shape, found.strides) == (wanted.shape, wanted.strides)
        assert (found == wanted).all()
    t = torch.from_numpy(x)
    for found, wanted in zip(
        swapped(x), (t.transpose(1, 0), t.permute(*reversed(range(t.ndim))), t.transpose(-1, 0)),
        strict=True,
    ):  # fmt: skip
        assert (found == wanted.numpy()).all()


def test_views_in_which_numpy_and_torch_differ_are_refused(emulated):
    for axes in ((0, 1), (-2, -1), (0, -1)):

        @cl.function
        def turned(x, axes: tuple = axes):
            return x.transpose(*axes)

        with pytest.raises(ValueError, match=r"transpose\(.*\) of a matrix swaps .* write x.mT"):
            turned(np.zeros((2, 3)))

    @cl.function
    def matrix(x):
        return x.mT

    @cl.function
    def far(x):
        return x.swapaxes(0, 2)

    with pytest.raises(ValueError, match=r"x must have at least 2 dimensions for mT .got 1"):
        matrix(np.zeros(3))
    with pytest.raises(IndexError, match="axis must be from -2 to 1 for x"):
        far(np.zeros((2, 2)))


def test_lists_may_be_empty(emulated, tmp_path):
    @cl.function
    def total(xs, n: int):
        return sum((x.shape[0] for x in xs), n)

    x = np.zeros(3)
    calls = [([], 2), ([x], 2), ([], 5), ([x, x], 1), ([x], 0)]
    assert [total(*one) for one in calls] == [2, 5, 5, 7, 3]
    cl.ship.save([total], tmp_path / "t.culib")
    saved = cl.ship.load_library(tmp_path / "t.culib").total
    assert [saved(*one) for one in calls] == [2, 5, 5, 7, 3]


def test_masked_arrays_are_refused(emulated):
    @cl.function
    def size(x):
        return x.size

    @ew.fuse
    def doubled(x):
        return x * 2

    for given in (np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.array([1.0])):
        with pytest.raises(TypeError, match="argument x is a masked NumPy array"):
            size(given)
        with pytest.raises(TypeError, match="argument x is a masked NumPy array"):
            doubled(given)


def test_the_other_byte_order_is_said_in_a_sentence(emulated):
    @cl.function
    def size(x):
        return x.size

    with pytest.raises(
        (TypeError, ValueError),
        match=r"argument x: the array is not in the native|argument x .*type",
    ):
        size(np.zeros(3, ">f4"))


def scaled_by(n, factor=2, *, more=1):
    return n * factor + more


def test_changed_defaults_and_code_of_a_helper_are_noticed(emulated):
    @cl.function
    def scaled(n: int):
        return scaled_by(n)

    before = scaled_by.__defaults__, scaled_by.__kwdefaults__, scaled_by.__code__
    try:
        assert [scaled(5), scaled(5)] == [11, 11]
        scaled_by.__defaults__ = (3,)
        assert [scaled(5), scaled(6), scaled(5)] == [16, 19, 16]
        scaled_by.__kwdefaults__ = {"more": 0}
        assert [scaled(5), scaled(5)] == [15, 15]
        scaled_by.__code__ = (lambda n, factor, *, more: n - factor - more).__code__
        assert [scaled(5), scaled(5)] == [2, 2]
    finally:
        scaled_by.__defaults__, scaled_by.__kwdefaults__, scaled_by.__code__ = before
    assert scaled(5) == 11


def test_ldexp(emulated):
    @cl.function
    def scaled(f: float, n: int):
        try:
            return math.ldexp(f, n)
        except OverflowError:
            return -1.0

    calls = ((1.5, 3), (1.5, 2000), (5e-324, 1), (-0.0, 4), (1.0, -1080))
    wanted = [repr(math.ldexp(f, n)) if n < 2000 else "-1.0" for f, n in calls]
    for _ in range(2):
        assert [repr(scaled(*one)) for one in calls] == wanted
