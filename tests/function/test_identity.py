"""`is` and its kin in a body: the right answer, or an error with the line."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import culaunch as cl

WEIGHTS = np.zeros(3, np.float32)
MISSING = object()


def is_one(a, b):
    return a is b


def found_in(many, wanted):
    return [i for i, one in enumerate(many) if one is wanted]


def both_ways(function, *args):
    """Call natively, and as plain Python."""
    yield lambda: function(*args)

    def plainly():
        with cl.function_debugging():
            return function(*args)

    yield plainly


@pytest.mark.parametrize(
    "body",
    [
        lambda x, y: 1 if x is not y else 2,
        lambda x, y: is_one(x, y),
        lambda x, y: is_one(*(x, y)),
        lambda x, y: list(map(lambda a: a is y, [x])),  # noqa: C417
        lambda x, y: [one is x for one in (y,)],
        lambda x, y: found_in([x, y], y),
        lambda x, y: any(one is x for one in (y, x)),
        lambda x, y: operator.is_(x, y),
        lambda x, y: operator.is_not(x, y),
        lambda x, y: id(x) == id(y),
        lambda x, y: {x: 1}.get(y),
        lambda x, y: x is WEIGHTS,
        lambda x, y: x in (y, x),
        lambda x, y: (x, 1) == (y, 1),
    ],
)
def test_arrays_of_a_call_are_not_compared_by_identity(emulated, body):
    function = cl.function(body)
    x = np.zeros(3, np.float32)
    for given in ((x, x.copy()), (x, x), (WEIGHTS, WEIGHTS)):
        with pytest.raises(TypeError, match=r"at .*test_identity.py:\d+: "):
            function(*given)


def test_a_body_that_catches_the_refusal_is_refused(emulated):
    @cl.function
    def same(x, y):
        try:
            assert x is y
        except (AssertionError, TypeError):
            return False
        return True

    x = np.zeros(3, np.float32)
    for call in both_ways(same, x, x):
        with pytest.raises(
            TypeError, match=r":\d+: .*x and y cannot be compared with `is`.* pass a bool"
        ):
            call()


def test_arrays_that_cannot_be_one_are_told_apart(emulated):
    @cl.function
    def told(x, y=None, flag: bool = True):
        z = cl.empty_like(x)
        w = x
        return (
            y is None, x is not None, x is MISSING, z is x, x is w, x[0] is x, is_one(w, x),
            x is not Ellipsis, flag is True, is_one(flag, False), x.dtype is x.dtype,
            found_in([z, x], z), type(x) is tuple, x in [w, 1], {1: 2}[1] is x.shape,
        )  # fmt: skip

    x = np.zeros((3, 2), np.float32)
    wanted = (
        True, True, False, False, True, False, True, True, True, False, True, [0], False, True,
        False,
    )  # fmt: skip
    for call in both_ways(told, x):
        assert call() == wanted


def of_bools(n, f, flag):
    found = [(n > 3) is True, is_one(n > 3, f > 0), (not n) is False, (n > 3) is flag]
    match n > 3:
        case True:
            found.append("large")
        case False:
            found.append("small")
    match (n == 1, flag):
        case (True, True):
            found.append("one")
        case (False, None):
            found.append("none")
        case _:
            found.append("other")
    found += [n is True, n is None, f is not False, n is MISSING, (n > 1) is n, f is n]
    found.append(operator.is_(n > 2, True))
    assert (n > -100) is True
    return tuple(found)


@pytest.mark.parametrize("flag", [True, False, None])
def test_comparisons_are_bools_also_for_is_and_match(emulated, flag, tmp_path):
    calls = [(5, 1.0), (1, 1.0), (0, -1.0), (4, 0.0), (5, 1.0), (1, -2.0)]
    wanted = [of_bools(*one, flag) for one in calls]
    for order in (calls, calls[::-1]):
        function = cl.function(of_bools)
        for _ in range(2):
            for call in order:
                assert function(*call, flag) == wanted[calls.index(call)]
        cl.ship.save([function], tmp_path / "a.culib")
        saved = cl.ship.load_library(tmp_path / "a.culib").of_bools
        assert [saved(*one, flag) for one in calls] == wanted
    with cl.function_debugging():
        assert [function(*one, flag) for one in calls] == wanted


@pytest.mark.parametrize(
    "body",
    [
        lambda n: n is n + 1,
        lambda n: is_one(n, 3),
        lambda n: operator.is_(float(n), 1.5),
        lambda n: id(n),
    ],
)
def test_numbers_of_a_call_are_not_compared_by_identity(emulated, body):
    with pytest.raises(TypeError, match=r"at .*test_identity.py:\d+: .*(`is`|id\(\)).*=="):
        cl.function(body)(3)


def test_the_framework_of_an_array_is_not_asked_for(emulated):
    @cl.function
    def of_numpy(x):
        return isinstance(x, np.ndarray)

    @cl.function
    def exactly(x):
        return type(x) is np.ndarray

    @cl.function
    def numbers(x, n: int):
        return isinstance(x, (int, tuple)), isinstance(n, int), isinstance(x, object)

    x = np.zeros(3)
    for function in (of_numpy, exactly):
        with pytest.raises(TypeError, match=r"test_identity.py:\d+: .*share one recording"):
            function(x)
    assert numbers(x, 3) == (False, True, True)


def test_lines_and_names_stay_as_they_are(emulated):
    @cl.function
    def checked(x, y, n: int):
        if x is None or n is MISSING:
            return 0
        cl.check(n < 9, f"n is {n}")
        return [z is None for z in (x, y)], (n > 1) is True

    x = np.zeros(3)
    assert [checked(x, x, n) for n in (1, 5)] == [([False] * 2, False), ([False] * 2, True)]
    with pytest.raises(ValueError, match=r"n is 12 \(checked, at .*test_identity.py:\d+\)"):
        checked(x, x, 12)
    assert ", 2 paths\n" in checked.explain(x, x, 1)


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_comparisons_of_symbols_are_bools(emulated):
    import torch

    @cl.function
    def sized(x):
        match x.shape[0] > 4:
            case True:
                rows = 2
            case False:
                rows = 1
        if (x.shape[0] > 5) is True:
            rows = 3
        return cl.zeros((rows, x.shape[1]), x.dtype)

    op = cl.frameworks.torch_op("culaunch_identity::sized", sized)
    compiled = torch.compile(lambda x: op(x * 2) + 1, fullgraph=True, dynamic=True, backend="eager")
    for rows in (3, 6, 5, 3, 7):
        wanted = 1 if rows < 5 else 2 if rows == 5 else 3
        assert tuple(compiled(torch.ones(rows, 3)).shape) == (wanted, 3)
        fake = torch.library.opcheck(
            torch.ops.culaunch_identity.sized.default, (torch.ones(rows, 3),),
            test_utils="test_faketensor",
        )  # fmt: skip
        assert fake == {"test_faketensor": "SUCCESS"}
