"""Calls whose keywords CPython puts in a dict: more than about 15 of them, or ``**keywords``."""

import gc
from collections import OrderedDict

import pytest

pytestmark = pytest.mark.needs("triton", "torch")

# More than CPython passes without a dict; enough calls for the launchers to take dicts.
NAMES = [f"n{i}" for i in range(20)]
OFTEN = 40


@pytest.fixture
def x():
    import torch

    return torch.zeros(4096)


@pytest.fixture
def kernel(recorder):
    from quick_kernels import many

    from culaunch.triton import native

    return native(many)


def told(recorder):
    launch = recorder.last
    return launch.grid, launch.arguments


def spelt(**other):
    """A call as a program spells it, with every keyword."""
    numbers = ", ".join(f"{name}={name!r}[1:] and {i}" for i, name in enumerate(NAMES))
    scope = dict(other)
    exec(f"def call(kernel, grid, x, last):\n    kernel[grid](x=x, {numbers}, last=last)", scope)
    return scope["call"]


def expected(recorder, kernel, x, last, grid=(1,)):
    numbers = dict(zip(NAMES, range(20), strict=True))
    kernel._call_plain(grid, (), {"x": x, **numbers, "last": last})
    return told(recorder)


@pytest.mark.parametrize("grid", [(1,), lambda meta: (meta["last"],)])
def test_many_keywords(kernel, recorder, x, grid):
    call = spelt()
    for i in range(OFTEN):
        last = 7 + i % 3
        call(kernel, grid, x, last)
        quick = told(recorder)
        assert quick == expected(recorder, kernel, x, last, grid)
    before = kernel._misses
    call(kernel, grid, x, 8)
    assert kernel._misses == before


class Named:
    """Its attributes are in a dict whose keys all objects of the class share."""

    def __init__(self, x, last):
        self.x = x
        for i, name in enumerate(NAMES):
            setattr(self, name, i)
        self.last = last


def test_dicts_of_every_make(kernel, recorder, x):
    """Names deleted before, names that share their keys, strings that are not interned."""
    call, launcher = spelt(), kernel[(1,)]
    numbers = dict(zip(NAMES, range(20), strict=True))
    right = expected(recorder, kernel, x, 9)
    for _ in range(OFTEN):
        call(kernel, (1,), x, 9)

    class Other(dict):
        pass

    for _ in range(3):
        first = {"gone": 0, "x": x, **numbers, "last": 9}
        del first["gone"]
        late = {"x": x, "n0": 5, "gone": 0, **numbers, "last": 8}
        del late["gone"]
        late["last"] = 9
        for keywords in (
            first, late, vars(Named(x, 9)), Other(first), OrderedDict(first),
            {"".join([*name]): value for name, value in first.items()},
        ):  # fmt: skip
            launcher(**keywords)
            assert told(recorder) == right
    with pytest.raises(TypeError, match="string"):
        launcher(**{**first, 7: 7})


def test_a_launcher_that_takes_dicts_is_called_in_any_way(kernel, recorder, x):
    call, launcher = spelt(), kernel[(1,)]
    numbers = dict(zip(NAMES, range(20), strict=True))
    backwards = dict(reversed({"x": x, **numbers, "last": 9}.items()))
    for _ in range(OFTEN):
        call(kernel, (1,), x, 9)
    right = told(recorder)
    for again in (
        lambda: launcher(x, *range(20), 9),
        lambda: launcher(x, *range(20), last=9),
        lambda: launcher(**backwards),
        lambda: launcher(**{"".join(name): value for name, value in backwards.items()}),
        lambda: launcher.__call__(x=x, **numbers, last=9),
        lambda: call(kernel, [1], x, 9),
    ):
        for _ in range(3):
            again()
            assert told(recorder) == right


def test_what_is_wrong_is_said_as_ever(kernel, recorder, x):
    call, launcher = spelt(), kernel[(1,)]
    for _ in range(OFTEN):
        call(kernel, (1,), x, 9)
    numbers = dict(zip(NAMES, range(20), strict=True))
    with pytest.raises(TypeError, match="is missing argument 'last'"):
        launcher(x=x, **numbers)
    with pytest.raises(TypeError, match="is missing argument 'x'"):
        launcher()
    with pytest.raises(TypeError, match="x"):
        launcher(x, x=x, **numbers, last=9)
    with pytest.raises(KeyError, match="bogus"):
        launcher(x=x, **numbers, last=9, bogus=1)
    call(kernel, (1,), x, 9)


def test_it_is_looked_again_how_calls_come(kernel, recorder, x):
    """A launcher that seemed to get dicts goes back to quick calls without one."""
    call, launcher = spelt(), kernel[(1,)]
    for _ in range(OFTEN):
        call(kernel, (1,), x, 9)
    for i in range(9000):
        launcher(x, *range(20), i % 5)
        if i % 1000 == 0:
            quick = told(recorder)
            assert quick == expected(recorder, kernel, x, i % 5)
    call(kernel, (1,), x, 9)


def test_a_dict_that_somebody_else_has(kernel, recorder, x):
    """It may change while the call runs: what it held is kept."""
    from functools import partial

    call = spelt()
    for _ in range(OFTEN):
        call(kernel, (1,), x, 9)
    numbers = dict(zip(NAMES, range(20), strict=True))

    def grid(meta):
        shared.clear()
        gc.collect()
        return (meta["last"],)

    shared = {"x": x, **numbers, "last": 10**6}
    bound = partial(kernel[grid], **shared)
    shared = bound.keywords
    with pytest.raises(Exception, match=r"grid|last|too large"):
        bound(last=10**12)
    shared.update({"x": x, **numbers, "last": 5})
    bound()
    assert recorder.last.grid == (5, 1, 1)


def test_an_int_whose_type_is_said(recorder, x):
    """It must fit; it is quick like any other, and specialized as in Triton."""
    from quick_kernels import annotated

    from culaunch.triton import native

    kernel = native(annotated)
    for small, large in ((7, 8), (-(2**31), 2**63), (16, 2**64 - 1), (1, 1), (2**31 - 1, 0)):
        for _ in range(3):
            kernel[(1,)](x, small, large)
            quick = told(recorder)
            kernel._call_plain((1,), (x, small, large), {})
            assert told(recorder) == quick
    for _ in range(3):
        kernel[(1,)](x, 5, 6)
    before = kernel._misses
    kernel[(1,)](x, 9, 10)
    assert kernel._misses == before
    for wrong in ((2**31, 0), (-(2**31) - 1, 0), (0, -1), (0, 2**64)):
        with pytest.raises(OverflowError):
            kernel[(1,)](x, *wrong)
        with pytest.raises(OverflowError):
            kernel._call_plain((1,), (x, *wrong), {})
