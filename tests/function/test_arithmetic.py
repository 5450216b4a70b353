"""The arithmetic of programs is Python's, to the last bit and to the kind of error."""

from __future__ import annotations

import functools
import math
import operator
import struct

import pytest
from assembler import FORMAT, Assembler, Traced
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from culaunch._function.programs import opcodes as oc

LEAST, MOST = -(1 << 63), (1 << 63) - 1
EDGES = [0, 1, -1, 2, -2, 3, 7, 62, 63, 64, 1 << 31, 1 << 32, 1 << 53, (1 << 53) + 1, 1 << 62,
         MOST, MOST - 1, LEAST, LEAST + 1]  # fmt: skip
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-300, 5e-324, 1e300, -1e300, 2.0**53, 2.0**63,
          -(2.0**63), math.inf, -math.inf, math.nan, math.pi]  # fmt: skip

ints = st.sampled_from(EDGES) | st.integers(LEAST, MOST) | st.integers(-100, 100)
floats = st.sampled_from(FLOATS) | st.floats()


def ceildiv(x, y):
    return -(-x // y)


def power(x, y):
    if y < 0:
        raise ValueError
    if abs(x) > 1 and y > 64:
        raise OverflowError
    return x**y


def shift_left(x, y):
    if y < 0:
        raise ValueError
    return 0 if x == 0 else x << y if y < 200 else 1 << 200


def shift_right(x, y):
    if y < 0:
        raise ValueError
    return x >> min(y, 200)


def next_power_of_2(x):
    return 1 if x <= 1 else 1 << (x - 1).bit_length()


def float_power(x, y):
    result = x**y
    if isinstance(result, complex):
        raise ValueError
    return result


INTS = {
    "ADD": operator.add, "SUB": operator.sub, "MUL": operator.mul, "FLOORDIV": operator.floordiv,
    "MOD": operator.mod, "POW": power, "MIN": min, "MAX": max, "SHL": shift_left,
    "SHR": shift_right, "AND": operator.and_, "OR": operator.or_, "XOR": operator.xor,
    "CEILDIV": ceildiv, "TRUEDIV": operator.truediv, "EQ": operator.eq, "NE": operator.ne,
    "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge,
}  # fmt: skip
ONE_INT = {
    "NEG": operator.neg, "ABS": abs, "INVERT": operator.invert, "NEXT_POW2": next_power_of_2,
    "BIT_LENGTH": int.bit_length, "I2F": float,
}  # fmt: skip
REALS = {
    "FADD": operator.add, "FSUB": operator.sub, "FMUL": operator.mul, "FDIV": operator.truediv,
    "FFLOORDIV": operator.floordiv, "FMOD": operator.mod, "FPOW": float_power, "FMIN": min,
    "FMAX": max, "FEQ": operator.eq, "FNE": operator.ne, "FLT": operator.lt, "FLE": operator.le,
    "FGT": operator.gt, "FGE": operator.ge,
}  # fmt: skip
ONE_REAL = {
    "FNEG": operator.neg, "FABS": abs, "FLOOR": math.floor, "CEIL": math.ceil,
    "TRUNC": math.trunc, "ROUND": round, "ISNAN": math.isnan, "ISINF": math.isinf,
    "ISFINITE": math.isfinite,
}  # fmt: skip
MIXED = {
    "IFEQ": operator.eq, "IFNE": operator.ne, "IFLT": operator.lt, "IFLE": operator.le,
    "IFGT": operator.gt, "IFGE": operator.ge,
}  # fmt: skip
KINDS = {"I": "int", "F": "float", "B": "bool"}


@functools.cache
def computes(name, arguments, function=None):
    """Give a function that runs one instruction on its arguments ("i" and "f")."""
    a = Assembler()
    operands = [a.op("ARG_I" if one == "i" else "ARG_F", i) for i, one in enumerate(arguments)]
    if function is not None:
        operands.insert(0, function)
    form = FORMAT["opcodes"][name][1]
    result = a.op(name, *operands, text="here" if "t" in form else -1)
    a.give(KINDS[form[0]], result)
    program = a.program()
    return Traced(" ".join(f"x{i}" for i in range(len(arguments))), program)


def outcome(function, *args):
    """Give the bits of a result, or the kind of the error."""
    try:
        result = function(*args)
    except (OverflowError, ZeroDivisionError, ValueError) as error:
        return type(error)
    if isinstance(result, bool):
        return result
    if isinstance(result, int):
        return result if LEAST <= result <= MOST else OverflowError
    return "nan" if math.isnan(result) else struct.pack("<d", result)


def compare(name, function, *args):
    native = computes(name, "".join("i" if isinstance(one, int) else "f" for one in args))
    assert outcome(native, *args) == outcome(function, *args), (name, args)


@pytest.mark.parametrize("name", INTS)
def test_edges(driver, name):
    for x in EDGES:
        for y in EDGES:
            compare(name, INTS[name], x, y)


@pytest.mark.parametrize("name", REALS)
def test_edges_of_floats(driver, name):
    for x in FLOATS:
        for y in FLOATS:
            compare(name, REALS[name], x, y)


@pytest.mark.parametrize("name", [*ONE_INT, *ONE_REAL])
def test_edges_of_one(driver, name):
    for x in EDGES if name in ONE_INT else FLOATS:
        compare(name, {**ONE_INT, **ONE_REAL}[name], x)


@pytest.mark.parametrize("name", MIXED)
def test_an_int_and_a_float_compare_exactly(driver, name):
    for x in EDGES:
        for y in [*FLOATS, float(x), math.nextafter(float(x), math.inf)]:
            compare(name, MIXED[name], x, y)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(x=ints, y=ints, a=floats, b=floats)
@example(x=LEAST, y=-1, a=-0.0, b=math.inf)
def test_any_numbers(driver, x, y, a, b):
    for name, function in INTS.items():
        compare(name, function, x, y)
    for name, function in REALS.items():
        compare(name, function, a, b)
    for name, function in ONE_INT.items():
        compare(name, function, x)
    for name, function in ONE_REAL.items():
        compare(name, function, a)
    for name, function in MIXED.items():
        compare(name, function, x, a)


@pytest.mark.parametrize("name", [one for one in FORMAT["math"] if hasattr(math, one)])
def test_math_is_pythons(driver, name):
    function, number = getattr(math, name), name
    takes_two = name in oc.TWO_OPERANDS
    if name == "ldexp":  # whose second operand is an int
        function = oc.math_call(name)
    native = computes("MATH", "ff" if takes_two else "f", number)
    for x in [*FLOATS, 0.25, 700.0, 1000.0]:
        for y in FLOATS if takes_two else [None]:
            args = (x, y) if takes_two else (x,)
            assert outcome(native, *args) == outcome(function, *args), args


def test_math_of_a_newer_python(driver, monkeypatch):
    """A program may have been made by Python 3.11, whose math has two functions more."""
    exp2, cbrt = (computes("MATH", "f", name) for name in ("exp2", "cbrt"))
    for name in ("exp2", "cbrt"):
        monkeypatch.delattr(math, name, raising=False)
    for x, wanted in ((3.0, 8.0), (-1.0, 0.5), (-math.inf, 0.0), (math.inf, math.inf)):
        assert exp2(x) == wanted
    for x, wanted in ((27.0, 3.0), (-8.0, -2.0), (-math.inf, -math.inf), (1e300, 1e100)):
        assert cbrt(x) == pytest.approx(wanted, rel=1e-15)  # the C library's may be one bit off
    assert math.isnan(exp2(math.nan))
    assert math.isnan(cbrt(math.nan))
    with pytest.raises(OverflowError, match=r"^here: math range error$"):
        exp2(1024.0)


def test_selections_and_bools(driver):
    a = Assembler()
    n, x = a.op("ARG_I", 0), a.op("ARG_F", 1)
    is_small, is_odd = a.op("LT", n, a.i(3)), a.op("EQ", a.op("MOD", n, a.i(2), text="t"), a.i(1))
    results = [
        ("int", a.op("SELECT_I", is_small, n, a.i(-1))),
        ("float", a.op("SELECT_F", is_odd, x, a.f(2.0))),
        ("bool", a.op("SELECT_B", is_small, is_odd, is_small)),
        *[("bool", a.op(name, is_small, is_odd)) for name in ("AND_B", "OR_B", "XOR_B")],
        ("bool", a.op("NOT", is_small)),
        ("int", a.op("B2I", is_odd)),
    ]
    a.give("tuple", results)
    f = Traced("n x", a.program())
    for n in range(5):
        small, odd = n < 3, n % 2 == 1
        chosen = (n if small else -1, 0.5 if odd else 2.0, odd if small else small)
        combined = (small and odd, small or odd, small != odd, not small, int(odd))
        chosen = (n if small else -1, 0.5 if odd else 2.0, odd if small else small)
        combined = (small and odd, small or odd, small != odd, not small, int(odd))
        assert f(n, 0.5) == chosen + combined


@pytest.mark.parametrize("exception", ["ValueError", "OverflowError", "ZeroDivisionError"])
def test_whether_an_operation_would_raise(driver, exception):
    operations = {"log": math.log, "exp": math.exp, "FPOW": float_power}
    a = Assembler()
    x, y = a.op("ARG_F", 0), a.op("ARG_F", 1)
    number = FORMAT["exceptions"][exception]
    results = [
        a.op("RAISES", FORMAT["opcodes"]["MATH"][0], number, name, x) for name in ("log", "exp")
    ]
    results.append(a.op("RAISES", FORMAT["opcodes"]["FPOW"][0], number, "pow", x, y))
    a.give("tuple", [("bool", one) for one in results])
    f = Traced("x y", a.program())
    for x in [*FLOATS, 1000.0]:
        for y in (0.5, -1.0, 1e300):
            wanted = []
            for name, function in operations.items():
                found = outcome(function, *((x, y) if name == "FPOW" else (x,)))
                wanted.append(isinstance(found, type) and found.__name__ == exception)
            assert f(x, y) == tuple(wanted), (x, y)


def test_an_error_names_its_place(driver):
    f = computes("FLOORDIV", "ii")
    with pytest.raises(ZeroDivisionError, match=r"^here: division by zero$"):
        f(1, 0)
    assert f.failures[-1] == (19, 0, "here", (1, 0))
    with pytest.raises(OverflowError, match=r"^here: the result does not fit 64 bits$"):
        f(LEAST, -1)
    f = computes("MATH", "f", "sqrt")
    with pytest.raises(ValueError, match="here: "):
        f(-1.0)
    assert f.failures[-1] == (80, FORMAT["math"]["sqrt"], "here", (-1.0,))
