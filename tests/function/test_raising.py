"""An exception that a body catches is a branch, in every order of calls and every way to run."""

from __future__ import annotations

import contextlib
import itertools
import math

import numpy as np
import pytest
from interpreter import Interpreter

import culaunch as cl

MANY = 10**6
KEYS = {1: "one", 2: "two"}


def guarded(function, *exceptions, otherwise):
    try:
        return function()
    except exceptions:
        return otherwise


@contextlib.contextmanager
def caught(into):
    try:
        yield
    except ArithmeticError:
        into.append(-1)


def divided(n):
    try:
        return 10 // n
    except ZeroDivisionError:
        return -1


def divided_last(n):
    try:
        found = 7 % n
    except ZeroDivisionError:
        found = 100
    else:
        found += 1
    finally:
        found = found * 2 if n > 0 else found * 3
    return found


def suppressed(n):
    found = 0
    with contextlib.suppress(ZeroDivisionError, ValueError):
        found = 1 << n
        found += 12 // (n - 2)
    return found


def helped(n):
    return guarded(lambda: cl.ceildiv(10, n), ZeroDivisionError, otherwise=MANY)


def managed(n):
    into = []
    with caught(into):
        into.append(5 // n)
    return into[-1]


def nested(n):
    try:
        try:
            return 10 // n
        except KeyError:
            return -2
        finally:
            n = n + 1
    except ZeroDivisionError:
        return n


def checked(n):
    try:
        cl.check(n % 2 == 0, f"n must be even (got {n})")
    except ValueError as error:
        return str(error).partition(" (checked")[0]
    return n


def looked_up(n):
    try:
        return KEYS[n]
    except KeyError:
        return 10 // (n - 3) if n != 3 else "three"


def swallowed(n):
    for step in (n, n - 1):
        try:
            10 // step
        except ZeroDivisionError:
            continue
        finally:
            n = n + 10
    return n


def raised_again(n):
    try:
        try:
            return 10 % n
        except ZeroDivisionError as error:
            raise KeyError("n") from error
    except KeyError:
        return -3


def returned_last(n):
    try:
        return 10 // n
    finally:
        if n == 0:
            return 5  # noqa: B012


@pytest.mark.parametrize(
    "body",
    [
        divided, divided_last, suppressed, helped, managed, nested, checked, looked_up, swallowed,
        raised_again, returned_last,
    ],
)  # fmt: skip
def test_a_body_that_catches_takes_both_sides(emulated, body, tmp_path):
    calls = (0, 1, 2, 5, -1)
    wanted = [body(n) for n in calls]
    for order in itertools.islice(itertools.permutations(range(len(calls))), 0, None, 7):
        function = cl.function(body)
        for _ in range(2):
            assert [function(calls[i]) for i in order] == [wanted[i] for i in order]
    with cl.function_debugging():
        assert [function(n) for n in calls] == wanted
    for _, program in function._programs():
        assert [Interpreter(program).run((n,)) for n in calls] == wanted
    cl.ship.save([function], tmp_path / "a.culib")
    library = cl.ship.load_library(tmp_path / "a.culib")
    assert [library.functions[body.__name__](n) for n in calls] == wanted


def rooted(f):
    try:
        return math.sqrt(f)
    except ValueError:
        return -1.0


def grown(f):
    try:
        return math.exp(f)
    except OverflowError:
        return 0.0


def whole(f):
    try:
        return int(f)
    except (ValueError, OverflowError) as error:
        return type(error).__name__


def powered(f):
    try:
        return f**-1.5
    except ZeroDivisionError:
        return 0.5
    except OverflowError:
        return 0.25


def shared(f):
    return f / 2 if f else guarded(lambda: 1 / f, ZeroDivisionError, otherwise=9.0)


@pytest.mark.parametrize("body", [rooted, grown, whole, powered, shared])
def test_what_floats_raise_is_a_branch(emulated, body):
    calls = (4.0, 0.0, math.inf, 1e4, 1e-300)
    calls += (math.nan, -2.0) if body is not powered else ()
    if body is whole:
        calls = (4.5, -0.5, math.inf, math.nan, -math.inf, 1e4)
    wanted = [repr(body(f)) for f in calls]
    for order in itertools.islice(itertools.permutations(range(len(calls))), 0, None, 31):
        function = cl.function(body)
        for _ in range(2):
            assert [repr(function(calls[i])) for i in order] == [wanted[i] for i in order]
    for _, program in function._programs():
        assert [repr(Interpreter(program).run((f,))) for f in calls] == wanted


def test_indices_and_shapes_that_are_caught(emulated):
    def found(x, n: int):
        try:
            row = x[n]
        except IndexError:
            return -1
        try:
            return row.reshape(2, -1).shape[1]
        except ValueError:
            return row.shape[0] * 100

    def plainly(x, n):
        row = x[n] if -x.shape[0] <= n < x.shape[0] else None
        return -1 if row is None else row.size // 2 if row.size % 2 == 0 else row.size * 100

    calls = [
        (np.zeros(shape, np.float32)[:, ::step], n)
        for shape, step, n in (((3, 4), 1, 0), ((3, 5), 1, 2), ((3, 4), 1, 3), ((1, 6), 1, -2))
    ]
    wanted = [plainly(*one) for one in calls]
    for order in itertools.permutations(range(len(calls))):
        function = cl.function(found)
        assert [function(*calls[i]) for i in order] == [wanted[i] for i in order]
        assert [function(*calls[i]) for i in order] == [wanted[i] for i in order]


def test_a_negative_size_and_a_large_argument_are_caught(kernels):
    @cl.function
    def made(n: int):
        try:
            return cl.zeros(n, "int32")
        except ValueError:
            return cl.zeros(1, "int32")

    @cl.function
    def noted(y, n: int):
        try:
            kernels["small"][1, 1](y, n, 1, 2)
        except OverflowError:
            kernels["small"][1, 1](y, 0, 1, 3)

    for first, second in ((3, -3), (-3, 3)):
        made._clear()
        sizes = [made(n).shape[0] for n in (first, second, first)]
        assert sizes == [max(n, 1) for n in (first, second, first)]
    for order in ((5, 500, 6), (500, 5, 600)):
        for n in order:
            y = np.zeros(3, np.int32)
            noted(y, n)
            assert y.tolist() == ([n, 1, 2] if n < 128 else [0, 1, 3])


def test_what_no_program_can_do_is_refused_though_it_is_caught(emulated):
    @cl.function
    def read(x):
        try:
            return float(x[0])
        except TypeError:
            return 1.0

    @cl.function
    def large(n: int):
        try:
            return n * n
        except OverflowError:
            return -1

    x = np.ones(3, np.float32)
    with pytest.raises(TypeError, match=r"return float\(x\[0\]\)`: argument x is converted"):
        read(x)
    with cl.function_debugging(), pytest.raises(TypeError, match="argument x is converted"):
        read(x)
    # Python's ints have no limit: what does not fit 64 bits is the call's error in any order.
    for n in (1 << 40, 3, 1 << 40):
        if n == 3:
            assert large(n) == 9
            continue
        with pytest.raises(OverflowError, match=r"test_raising.py:\d+.*64 bits"):
            large(n)


class Rows:
    """A sequence as Python before iterators had it."""

    def __init__(self, x):
        self.x = x

    def __getitem__(self, i):
        return self.x[i]


def test_python_catches_in_c(emulated):
    @cl.function
    def rows(x):
        return sum(row.shape[0] for row in Rows(x))

    for n in (3, 0, 5, 3):
        assert rows(np.zeros((n, 2), np.float32)) == 2 * n


def test_both_sides_are_explored_without_a_call(emulated, tmp_path):
    @cl.function
    def two(n: int, f: float):
        try:
            return 10 // n + math.sqrt(f)
        except ZeroDivisionError:
            return -1.0
        except ValueError:
            return -2.0

    two.specialize(n=int, f=float)
    cl.ship.save([two], tmp_path / "two.culib")
    saved = cl.ship.load_library(tmp_path / "two.culib").two
    calls = ((0, 4.0), (5, 4.0), (5, -4.0), (0, -4.0))
    assert [saved(*one) for one in calls] == [-1.0, 4.0, -2.0, -1.0]


def test_an_error_that_leaves_the_body_has_its_numbers(emulated):
    @cl.function
    def passed(x, n: int):
        try:
            return x[n].shape[0], 10 // (n - 1)
        except KeyError:
            return None

    with pytest.raises(
        IndexError, match="index 7 is out of range for axis 0 of x, which has size 3"
    ):
        passed(np.zeros((3, 2)), 7)
    assert passed(np.zeros((3, 2)), 2) == (2, 10)
    for n in (7, 9):
        with pytest.raises(
            IndexError, match=f"index {n} is out of range .* of x, which has size 3"
        ):
            passed(np.zeros((3, 2)), n)
    with pytest.raises(ZeroDivisionError, match=r"of 10 and 0: division by zero"):
        passed(np.zeros((3, 2)), 1)


@pytest.mark.slow
@pytest.mark.needs("torch")
@pytest.mark.parametrize("order", [(0, 2, 1), (2, 0, 1)])
def test_operators_of_torch_take_both_sides(emulated, order):
    import torch

    @cl.function
    def halves(x, n: int):
        try:
            rows = x.shape[0] // n
        except ZeroDivisionError:
            rows = 1
        return cl.zeros((rows, x.shape[1]), x.dtype)

    op = cl.frameworks.torch_op(f"culaunch_raising::halves{order[0]}", halves)

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def compiled(x, n):
        return op(x * 2, n) + 1

    for n in order:
        for x in (torch.ones(4, 3), torch.ones(6, 3)):
            shape = (x.shape[0] // n if n else 1, 3)
            assert tuple(op(x, n).shape) == shape
            assert torch.equal(compiled(x, n), torch.ones(shape))
