"""Tracing: operators, common subexpressions, and what a traced function must not do."""

from __future__ import annotations

import enum
import operator
import re

import numpy as np
import pytest

from culaunch import elementwise as ew


def body(source):
    return re.search(r"void compute\(.*?\{\n(.*?)\n\}", source, re.DOTALL)[1]


BINARY = ["add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift", "lt",
          "le", "gt", "ge", "eq", "ne", "pow"]  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_operators_on_integers(name):
    apply = getattr(operator, name)
    x, y = np.array([5, 9, -7, 12, 0]), np.array([3, 2, 4, 1, 6])
    both = ew.fuse(lambda x, y: (apply(x, y), apply(x, 3), apply(3, y)))
    for got, wanted in zip(both(x, y), (apply(x, y), apply(x, 3), apply(3, y)), strict=True):
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype


@pytest.mark.slow
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_operators_on_reals(name):
    apply = getattr(operator, name)
    x, y = np.array([5.5, 9, 7.25]), np.array([3, -2.0, 4])
    both = ew.fuse(lambda x, y: (apply(x, y), apply(x, 3), apply(1.5, y)))
    for got, wanted in zip(both(x, y), (apply(x, y), apply(x, 3), apply(1.5, y)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-15)


def test_unary_operators():
    x = np.array([3, -4, 0])
    for got, wanted in zip(
        ew.fuse(lambda x: (-x, +x, abs(x), ~x))(x), (-x, x, abs(x), ~x), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)
    truth = np.array([True, False])
    np.testing.assert_array_equal(ew.fuse(lambda x: ~x)(truth), ~truth)


def test_numpy_leaves_traced_values_alone():
    got = ew.fuse(lambda x: np.float32(2) * x if False else 2.0 * x)(np.ones(2, np.float32))
    assert got.tolist() == [2, 2]
    with pytest.raises(TypeError):
        ew.fuse(lambda x: np.tanh(x))(np.ones(2, np.float32))


def test_common_subexpressions_are_computed_once():
    def function(x, y):
        a = ew.exp(x * y) + 1
        b = ew.exp(x * y) + 1
        return a * b, ew.exp(x * y)

    source = body(ew.fuse(function).source(np.ones(3, np.float32), np.ones(3, np.float32)))
    assert source.count("expf") == 1
    assert source.count("x0 * x1") == 1
    assert source.count("1.0f +") + source.count("+ 1.0f") == 1


def test_constants_that_are_equal_but_not_the_same():
    x = np.ones(2, np.float32)
    zero, minus = ew.fuse(lambda x: (ew.copysign(x, 0.0), ew.copysign(x, -0.0)))(x)
    assert (zero[0], minus[0]) == (1, -1)
    assert ew.fuse(lambda x: x * True if False else ew.where(x > 0, 1, 1.0))(x).dtype == np.float64


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("ew.inf", np.inf), ("-ew.inf", -np.inf), ("ew.nan", np.nan), ("ew.pi", np.pi),
     ("1e300", np.inf), ("-2.5", -2.5), ("1e-45", 1e-45), ("16777217", 16777217.0)],
)  # fmt: skip
def test_constants(text, wanted):
    got = ew.fuse(eval(f"lambda x: x + {text}"))(np.zeros(1, np.float32))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, np.array([wanted]).astype(np.float32))


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1, -1, 0])
def test_integer_constants(number):
    assert ew.fuse(lambda x: x | number)(np.zeros(1, np.int64)).tolist() == [number]


def test_the_greatest_unsigned_constant():
    assert ew.fuse(lambda x: x | (2**64 - 1))(np.zeros(1, np.uint64)).tolist() == [2**64 - 1]
    assert ew.fuse(lambda x, a: x | a)(np.zeros(1, np.uint64), 2**64 - 1).tolist() == [2**64 - 1]
    with pytest.raises(OverflowError, match="argument a must fit"):
        ew.fuse(lambda x, a: x | a)(np.zeros(1, np.int64), 2**63)
    with pytest.raises(OverflowError, match="argument a must fit"):
        ew.fuse(lambda x, a: x | a)(np.zeros(1, np.int64), 2**80)


@pytest.mark.parametrize(
    "number", ["10**5000", "2**1024 - 1", "enum.IntEnum('E', {'A': 10**400}).A"]
)
def test_a_constant_that_no_type_holds_is_named(number):
    function = ew.fuse(eval(f"lambda x: x + {number}", {"enum": enum}))
    with pytest.raises(
        OverflowError, match=r"ew.add: no element type can represent an int of \d+ bits"
    ):
        function(np.zeros(1, np.float32))


@pytest.mark.slow
def test_a_long_chain():
    def many(x):
        for _ in range(1500):
            x = x * 0.5 + 1
        return x

    assert ew.fuse(many)(np.zeros(3, np.float32)).tolist() == [2, 2, 2]


def test_a_branch_on_numbers_names_the_line():
    def relu(x):
        if x > 0:
            return x
        return x * 0

    with pytest.raises(TypeError) as caught:
        ew.fuse(relu)(np.ones(3))
    message = str(caught.value)
    line = relu.__code__.co_firstlineno + 1
    assert f"test_trace.py:{line}: `if x > 0:`" in message
    assert "ew.where(condition, a, b)" in message
    assert "relu" in message


@pytest.mark.parametrize(
    ("code", "what"),
    [("int(x)", "converted to an int"), ("float(x)", "converted to a float"),
     ("complex(x)", "converted to a complex"), ("[1, 2][x]", "used as an index"),
     ("[*x]", "iterated over"), ("len(x)", "asked for its length"), ("x[0]", "is indexed"),
     ("x and 1", "used as a condition"), ("0 < x < 1", "used as a condition")],
)  # fmt: skip
def test_what_needs_the_numbers_is_refused(code, what):
    with pytest.raises(TypeError, match=what):
        ew.fuse(eval(f"lambda x: {code}"))(np.ones(3, np.int64))


@pytest.mark.parametrize(
    ("code", "hint"),
    [("x.sqrt()", r"write ew\.sqrt\(x\)"), ("x.shape", "sees one element"),
     ("x.sum()", "sees one element")],
)  # fmt: skip
def test_what_a_value_has_not_says_what_to_write(code, hint):
    with pytest.raises(AttributeError, match=rf"elementwise value of float64> has no .*{hint}"):
        ew.fuse(eval(f"lambda x: {code}"))(np.ones(3))


def test_branches_on_types_are_fine():
    half = ew.fuse(lambda x: x / 2 if x.dtype == ew.float32 else x // 2)
    assert half(np.ones(2, np.float32)).tolist() == [0.5, 0.5]
    assert half(np.ones(2, np.int32)).tolist() == [0, 0]


def test_functions_outside_of_a_trace():
    with pytest.raises(TypeError, match=r"ew.tanh works on the values of a function .* ndarray"):
        ew.tanh(np.ones(3))
    with pytest.raises(TypeError, match=r"ew.tanh takes values .* \(got 1.0\)"):
        ew.tanh(1.0)
    constant = np.ones(3)
    with pytest.raises(TypeError, match="pass every array as an argument"):
        ew.fuse(lambda x: x + constant)(np.ones(3))


def test_values_of_an_earlier_trace():
    kept = []
    ew.fuse(lambda x: kept.append(x) or x)(np.ones(3))
    with pytest.raises(TypeError, match="a value of an earlier trace"):
        ew.fuse(lambda x: x + kept[0])(np.ones(3))
    with pytest.raises(TypeError, match="returns a value of an earlier trace"):
        ew.fuse(lambda x: kept[0])(np.ones(3, np.float32))


def test_a_numpy_number_in_an_exponent_has_its_own_type():
    x = np.array([3, 1e30], np.float32)
    assert ew.fuse(lambda x: x ** np.float64(2))(x).tolist() == (x.astype(float) ** 2).tolist()
    assert ew.fuse(lambda x: x ** np.float32(2))(x).dtype == np.float32
    assert ew.fuse(lambda x: x**2.0)(x).dtype == np.float32


@pytest.mark.parametrize(
    ("code", "message"),
    [("ew.sqrt(x)", r"sqrt takes real, complex types \(got int64\): convert first"),
     ("x / 2", "divide takes real, complex types"),
     ("ew.logical_not(x)", r"logical_not takes bool types \(got int64\)"),
     ("ew.where(x, 1, 2)", r"where: condition must be bool \(got int64\)"),
     ("x + True", "int64 and Python bool do not promote"),
     ("ew.clip(x, 0.5, 1)", "int64 and Python float do not promote"),
     ("ew.astype(x, 'int7')", "dtype must be one of"),
     ("ew.astype(ew.astype(x, 'complex64'), 'float32')", "use ew.real"),
     ("x @ x", "unsupported operand")],
)  # fmt: skip
def test_types_that_a_function_does_not_take(code, message):
    with pytest.raises(TypeError, match=message):
        ew.fuse(eval(f"lambda x: {code}", {"ew": ew}))(np.ones(3, np.int64))


@pytest.mark.slow
def test_where_and_clip():
    x = np.array([-2.0, -0.5, np.nan, 0.5, 3])
    np.testing.assert_array_equal(
        ew.fuse(lambda x: ew.where(x > 0, x, -1))(x), np.where(x > 0, x, -1)
    )
    np.testing.assert_array_equal(ew.fuse(lambda x: ew.clip(x, -1, 1))(x), np.clip(x, -1, 1))
    np.testing.assert_array_equal(ew.fuse(lambda x: ew.clip(x, max=0))(x), np.minimum(x, 0))
    np.testing.assert_array_equal(
        ew.fuse(lambda x, lo: ew.clip(x, lo))(x, np.full(5, -1.0)), np.maximum(x, -1)
    )
    assert ew.fuse(lambda x: ew.clip(x))(x).tolist()[0] == -2
    with pytest.raises(TypeError, match="clip: x and the limits must promote to the type of x"):
        ew.fuse(lambda x, hi: ew.clip(x, max=hi))(x.astype(np.float32), x)
    truth = np.array([True, False])
    got = ew.fuse(lambda c, x: ew.where(c, x, 2j))(truth, np.array([1.0, 2.0], np.float32))
    np.testing.assert_array_equal(got, np.array([1, 2j], np.complex64))
