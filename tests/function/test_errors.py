"""Bad input: each a named error, with the argument or the line, and nothing launched half."""

import types
import warnings

import numpy as np
import pytest
from runs import in_threads

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")

HERE = r"test_errors.py:\d+: `"
x4 = np.arange(4, dtype=np.float32)


def test_what_depends_on_the_data_names_the_line():
    for use, message in (
        (lambda x: float(x[0]), "is converted to a float"),
        (lambda x: int(x[0]), "is converted to an int"),
        (lambda x: 1 if x else 2, "is used as a condition"),
        (lambda x: range(x), "is used as an int"),
        (lambda x: x.item(), r"is read with item\(\)"),
        (lambda x: x.tolist(), r"is read with tolist\(\)"),
        (lambda x: x[x], "is indexed by an array"),
        (lambda x: 3 in x, "is searched"),
        (lambda x: np.asarray(x), "is converted to a NumPy array"),
        (lambda x: np.array(x, copy=True), "is converted to a NumPy array"),
        (lambda x: cl.check(x, "x"), "is used as a condition"),
    ):
        with pytest.raises(TypeError, match=rf"{HERE}.*argument x {message}.*on its data"):
            cl.function(use)(x4)


def test_what_an_array_lacks_says_what_to_use():
    for use, error, message in (
        (lambda x: x + 1, TypeError, r"\+ of argument x: a body cannot compute with arrays"),
        (lambda x: 2 * x, TypeError, r"\* of argument x: a body cannot compute"),
        (lambda x: x == 1, TypeError, "== of argument x"),
        (lambda x: x < x.T, TypeError, "< of argument x"),
        (lambda x: x.numel(), AttributeError, "no attribute 'numel': use x.size"),
        (lambda x: x.stride(0), AttributeError, "use x.strides, in elements"),
        (lambda x: x.contiguous(), AttributeError, "no attribute 'contiguous': check"),
        (lambda x: x.nothing, AttributeError, "no attribute 'nothing': it has shape"),
        (lambda x: [*x], TypeError, "is iterated over: index it"),
        (
            lambda x: setattr(x, "name", 1),
            AttributeError,
            "attribute 'name' of argument x cannot be set",
        ),
        (lambda x: x.__setitem__(0, 1), TypeError, "is written to: launch a kernel"),
        (lambda x: x.reshape(3, 2), ValueError, "x has 4 elements, but .* requested shape has 6"),
        (lambda x: x.reshape(-1, -1), ValueError, "one size of a shape may be -1"),
        (lambda x: x.permute(1), ValueError, "must name each of the"),
        (lambda x: x[::-1], ValueError, "the step of a slice must be at least 1"),
        (lambda x: x[0, 0], IndexError, "x takes at most 1 indices, one per dimension .got 2"),
        (lambda x: x["a"], TypeError, "is indexed by ints, slices, None"),
        (
            lambda x: x.view("float64"),
            ValueError,
            "dtype of view.. must have 4 bytes, .* .got float64",
        ),
        (lambda x: x.is_aligned(0), TypeError, "bytes must be an int from 1 on"),
        (lambda x: x.device.attribute("heat"), ValueError, "no device attribute 'heat'"),
    ):
        with pytest.raises(error, match=message):
            cl.function(use)(x4)


def test_allocations_are_checked():
    for use, error, message in (
        (lambda x: cl.empty(-1, "int8"), ValueError, "shape must not have negative sizes .got -1"),
        (
            lambda x: cl.empty(x.shape[0] - 5, "int8"),
            ValueError,
            "shape must not have negative sizes .got -1",
        ),
        (lambda x: cl.empty(2.5, "int8"), TypeError, "shape must be an int or a tuple of ints"),
        (lambda x: cl.empty(3, "float31"), TypeError, "dtype must be one of bool, int8"),
        (lambda x: cl.empty(3, "int8", device=0), TypeError, "takes no device= in the body"),
        (lambda x: cl.zeros(3, "int8", stream=0), TypeError, "does not accept stream= in the body"),
        (lambda x: cl.empty(3, like=x4), TypeError, "like must be an array of the call"),
        (lambda x: cl.empty(dtype="int8"), TypeError, "shape is missing"),
    ):
        with pytest.raises(error, match=message):
            cl.function(use)(x4)


def test_a_size_that_is_negative_in_a_later_call(kernels):
    @cl.function
    def shrink(x, n: int):
        y = cl.zeros_like(x)
        kernels["scale<float>"][1, 64](x, x, 2.0, x.size)
        return cl.empty(x.shape[0] - n, "float32"), y

    x = x4.copy()
    assert shrink(x, 1)[0].shape == (3,)
    before = x.copy()
    with pytest.raises(ValueError, match="-1"):
        shrink(x, 5)
    np.testing.assert_array_equal(x, before)


def test_checks_show_the_numbers_of_the_call():
    @cl.function
    def checked(x, n: int):
        cl.check(n % 2 == 0, f"n must be even (got {n}), x has {x.shape[0]:>3} of {{them}}")
        cl.check((n > 0) & (n < 100), "n must be from 1 to 99", OverflowError)
        return n

    for _ in range(2):
        assert checked(x4, 2) == 2
        with pytest.raises(
            ValueError, match=r"n must be even .got 7., x has   4 of {them} .checked"
        ):
            checked(x4, 7)
        with pytest.raises(ValueError, match=r"n must be even .got -3., x has   2"):
            checked(x4[:2], -3)
        with pytest.raises(OverflowError, match=r"n must be from 1 to 99 .checked, at .*:"):
            checked(x4, 100)
    assert ", 1 path" in checked.explain(x4, 2)
    live = cl.function(debug=True)(checked.__wrapped__)
    with pytest.raises(ValueError, match=r"n must be even .got 7., x has   4 of {them} .checked"):
        live(x4, 7)


def test_what_check_takes():
    with pytest.raises(TypeError, match="message must be a str"):
        cl.check(True, 3)
    with pytest.raises(TypeError, match="exception must be one of ValueError"):
        cl.check(True, "a", KeyError)
    with pytest.raises(IndexError, match="a"):
        cl.check(False, "a", IndexError)
    cl.check(True, "a")


def test_the_bodys_own_errors_arrive_each_time():
    @cl.function
    def raising(n: int):
        assert n != 3, f"three: {n}"
        if n > 5:
            raise KeyError(n + 1)
        return n

    assert raising(1) == 1
    for _ in range(2):
        with pytest.raises(AssertionError, match="three: 3"):
            raising(3)
        with pytest.raises(KeyError):
            raising(9)
    assert raising(2) == 2


@pytest.mark.parametrize(
    ("compute", "bad", "error", "message"),
    [
        (lambda n: n * n, 2**40, OverflowError, r"\* of 1099511627776 and 1099511627776"),
        (lambda n: n + 2**62, 2**62, OverflowError, r"\+ of"),
        (lambda n: -n, -(2**63), OverflowError, "does not fit 64 bits"),
        (lambda n: 5 // n, 0, ZeroDivisionError, "// of 5 and 0: division by zero"),
        (lambda n: 5 % n, 0, ZeroDivisionError, "% of 5 and 0"),
        (lambda n: 5 / n, 0, ZeroDivisionError, "/ of 5 and 0"),
        (lambda n: cl.ceildiv(5, n), 0, ZeroDivisionError, "ceildiv of 5 and 0"),
        (lambda n: 1 << n, -1, ValueError, "<< of 1 and -1: negative shift"),
        (lambda n: 1 << n, 64, OverflowError, "<< of 1 and 64"),
        (lambda n: __import__("math").sqrt(n), -1, ValueError, "sqrt of -1.0"),
        (lambda n: 10 if 7 // n > 1 else 20, 0, ZeroDivisionError, "// of 7 and 0"),
    ],
)
def test_arithmetic_fails_with_the_line(compute, bad, error, message):
    function = cl.function(compute)
    with pytest.raises(error, match=HERE):  # at the first call
        function(bad)
    assert function(1) == compute(1)
    with pytest.raises(error, match=rf"{HERE}.*{message}"):  # and natively
        function(bad)


COUNT = 0
LIMITS = {"most": 4}
limit = 7


def test_a_body_that_warns():
    """Python notes in the globals which warnings were shown: that is no change by the body."""

    def body(n):
        warnings.warn("n is old", DeprecationWarning, stacklevel=1)
        return n

    with pytest.warns(DeprecationWarning, match="n is old"):
        assert cl.function(body)(1) == 1


def test_a_body_that_changes_a_global():
    def body(n):
        global COUNT
        COUNT += 1
        return n

    with pytest.raises(TypeError, match=r"the body of body changes the global 'COUNT'"):
        cl.function(body)(1)
    assert COUNT == 0

    def defines(n):
        global A_NEW_ONE
        A_NEW_ONE = n
        return n

    with pytest.raises(TypeError, match="changes the global 'A_NEW_ONE'"):
        cl.function(defines)(1)


def test_a_body_that_changes_what_it_closes_over():
    calls = 0

    @cl.function
    def body(n):
        nonlocal calls
        calls += 1
        return n

    with pytest.raises(TypeError, match=r"changes the variable 'calls' that .*closes over"):
        body(1)
    assert calls == 0


def test_what_a_body_reads_is_watched():
    global limit
    factor = 2

    @cl.function
    def body(n):
        return n * factor + limit

    assert body(1) == 9
    limit = 8
    try:
        assert body(1) == 10
        assert body(2) == 12
    finally:
        limit = 7
    assert body(1) == 9
    factor = 3
    assert body(1) == 10


size = 0


def test_a_global_that_the_body_does_not_read_is_not_watched():
    global size
    traced = []

    @cl.function
    def body(x):
        traced.append(1)
        return x.size

    for size in (1, 2, 3):  # noqa: B007
        assert body(x4) == 4
    assert traced == [1]


def test_a_module_s_names_are_watched(monkeypatch):
    @cl.function
    def body(n):
        return n + settings.offset

    settings.offset = 1
    assert body(1) == 2
    settings.offset = 5
    assert body(1) == 6


settings = types.ModuleType("some_settings")

KEPT = []


def test_stand_ins_that_escape_are_refused_at_every_use():
    @cl.function
    def body(x, n: int):
        KEPT[:] = [x, n, x.shape[0] * 2, x[1:], n > 1]
        return x.shape[0]

    assert body(x4, 3) == 4
    x, n, size, view, condition = KEPT
    for use in (
        lambda: x.shape,
        lambda: x.dtype,
        lambda: x[0],
        lambda: view.strides,
        lambda: x.is_contiguous(),
        lambda: n + 1,
        lambda: size * 2,
        lambda: -n,
        lambda: int(n),
        lambda: bool(condition),
        lambda: hash(size),
        lambda: f"{n}",
        lambda: cl.empty_like(x),
    ):
        with pytest.raises(TypeError, match=r"after the trace ended\. A body must not keep"):
            use()
    with pytest.raises(TypeError, match="must not keep"):
        body(x, 3)
    with pytest.raises(TypeError):
        body(x4, n)
    assert repr(x) == "<x, an array of float32>"


def test_arrays_of_several_frameworks_name_both():
    torch = pytest.importorskip("torch", reason="needs torch")

    @cl.function
    def two(x, y):
        return x.shape[0] + y.shape[0]

    assert two(torch.zeros(3), torch.zeros(2)) == 5
    with pytest.raises(TypeError, match=r"y.*(NumPy|numpy).*torch|torch.*(NumPy|numpy)"):
        two(torch.zeros(3), x4)


def test_what_is_no_argument():
    @cl.function
    def f(x):
        return 1

    for bad in ([1, 2], {}, 1j, [x4, 1], object):
        if bad is object:
            assert f(bad) == 1
            continue
        with pytest.raises(TypeError, match="argument x"):
            f(bad)
    with pytest.raises(OverflowError, match="argument x must fit 64 bits"):
        f(2**63)


def test_a_body_that_depends_on_more_than_its_arguments():
    @cl.function
    def unstable(n: int):
        if n > LIMITS["most"]:
            return 1
        return n + LIMITS["most"]

    assert unstable(1) == 5
    LIMITS["most"] = 3
    try:
        with pytest.raises(TypeError, match="ran differently although"):
            unstable(9)
    finally:
        LIMITS["most"] = 4


def test_an_unmarked_use_of_a_recording_outside():
    with pytest.raises(TypeError, match="function's body must be a Python function"):
        cl.function(3)
    with pytest.raises(TypeError, match="debug must be True or False"):
        cl.function(debug=1)
    with pytest.raises(TypeError, match="must not be a generator"):

        @cl.function
        def generator(x):
            yield x


def test_many_threads_trace_and_call(kernels):
    @cl.function
    def scale(x, factor: float, n: int):
        y = cl.empty_like(x)
        if n % 2:
            kernels["scale<float>"][1, 64](y, x, factor, x.size)
        else:
            kernels["scale<float>"][1, 64](y, x, 2 * factor, x.size)
        return y if n < 5 else (y, n)

    def work(seed):
        for i in range(12):
            n = (i * 7 + seed) % 9
            y = scale(x4[: 1 + i % 4], 3.0, n)
            y = y if n < 5 else y[0]
            assert y.tolist() == (x4[: 1 + i % 4] * (3 if n % 2 else 6)).tolist()

    assert in_threads(work, 6) == []
