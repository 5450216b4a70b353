"""Random bodies: traced, as plain Python, in the interpreter and natively, they give the same."""

import math
import struct

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from interpreter import Interpreter, Unknown

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")

LIMIT = 1 << 63
INT_UNARY = ("-", "abs", "~", "pow2", "float", "bits")
INT_BINARY = (
    "+",
    "-",
    "*",
    "//",
    "%",
    "min",
    "max",
    "ceildiv",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "/",
    "**",
)
FLOAT_UNARY = ("-", "abs", "floor", "ceil", "int", "round", "sqrt", "exp", "log", "tanh")
FLOAT_BINARY = ("+", "-", "*", "/", "//", "%", "min", "max", "**", "atan2", "hypot")
COMPARE = ("<", "<=", ">", ">=", "==", "!=")

leaves = st.one_of(
    st.tuples(st.just("int"), st.sampled_from([0, 1, 2, 3, 5, -1, -4, 64, 1000, 2**31, LIMIT - 1])),
    st.tuples(st.just("float"), st.sampled_from([0.0, 0.5, -1.5, 3.0, 1e10, 1e300])),
    st.tuples(st.just("name"), st.sampled_from(["n", "m", "rows", "columns", "z", "w"])),
)


def nodes(inner):
    return st.one_of(
        st.tuples(st.just("unary"), st.sampled_from(sorted({*INT_UNARY, *FLOAT_UNARY})), inner),
        st.tuples(
            st.just("binary"), st.sampled_from(sorted({*INT_BINARY, *FLOAT_BINARY})), inner, inner
        ),
        st.tuples(st.just("if"), st.sampled_from(COMPARE), inner, inner, inner, inner),
        st.tuples(st.just("select"), st.sampled_from(COMPARE), inner, inner, inner),
        st.tuples(st.just("loop"), st.integers(0, 3), inner, inner),
    )


trees = st.recursive(leaves, nodes, max_leaves=12)


def unary(op, x):
    if op == "-":
        return -x
    if op == "abs":
        return abs(x)
    if op == "float":
        return float(x)
    if isinstance(x, float):
        if op == "floor":
            return math.floor(x)
        if op == "ceil":
            return math.ceil(x)
        if op == "int":
            return int(x)
        if op == "round":
            return round(x)
        if op in ("sqrt", "log") and x < 0:
            x = -x
        if op in ("sqrt", "exp", "log", "tanh"):
            return getattr(math, op)(x)
        return x
    if op == "~":
        return ~x
    if op == "pow2":
        return cl.next_power_of_2(x)
    if op == "bits":
        return x.bit_length()
    return x


def binary(op, x, y):
    if op == "+":
        return x + y
    if op == "-":
        return x - y
    if op == "*":
        return x * y
    if op == "//":
        return x // y
    if op == "%":
        return x % y
    if op == "/":
        return x / y
    if op == "min":
        return min(x, y)
    if op == "max":
        return max(x, y)
    if op in ("atan2", "hypot"):
        return getattr(math, op)(x, y)
    if op == "**":
        if isinstance(y, int) and isinstance(x, int):
            return x ** (y % 5)
        return abs(x) ** y
    if isinstance(x, float) or isinstance(y, float):
        return x
    if op == "ceildiv":
        return cl.ceildiv(x, y)
    if op == "<<":
        return x << (y % 70)
    if op == ">>":
        return x >> (y % 70)
    if op == "&":
        return x & y
    return x | y if op == "|" else x ^ y


def compare(op, x, y):
    if op == "<":
        return x < y
    if op == "<=":
        return x <= y
    if op == ">":
        return x > y
    if op == ">=":
        return x >= y
    return x == y if op == "==" else x != y


def checked(value):
    """Refuse an int past 64 bits, as a program does; a float is followed by what it was."""
    if type(value) is int and not -LIMIT <= value < LIMIT:
        raise OverflowError("past 64 bits")
    return value


def evaluate(node, names):
    kind, *rest = node
    if kind in ("int", "float"):
        return rest[0]
    if kind == "name":
        return names[rest[0]]
    if kind == "unary":
        return checked(unary(rest[0], evaluate(rest[1], names)))
    if kind == "binary":
        return checked(binary(rest[0], evaluate(rest[1], names), evaluate(rest[2], names)))
    if kind == "loop":
        total = evaluate(rest[1], names)
        for _ in range(rest[0]):
            total = checked(total + evaluate(rest[2], names))
        return total
    op, x, y, *sides = rest
    x, y = evaluate(x, names), evaluate(y, names)
    if kind == "if":
        return evaluate(sides[0] if compare(op, x, y) else sides[1], names)
    return (checked(evaluate(sides[0], names)), compare(op, x, y))[0]


def outcome(function, call):
    """Return the result, or the type of the error, in a form in which NaN is equal to itself."""
    *values, rows, columns = call
    try:
        value = function(np.zeros((rows, columns), np.float32), *values)
    except (ArithmeticError, ValueError) as error:
        # A value that does not fit is an OverflowError, wherever it is found first.
        return OverflowError if isinstance(error, OverflowError) else type(error)
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    return value


numbers = st.sampled_from([0, 1, 2, 3, 7, 100, -1, -5, 2**31, 2**62, -(2**63)])
floats = st.sampled_from([0.0, -0.0, 1.0, 0.1, -2.5, 7.0, 1e18, 1e19, 1e308, math.inf, math.nan])
calls = st.tuples(numbers, numbers, floats, floats, st.integers(0, 5), st.integers(0, 5))


@pytest.mark.slow
@pytest.mark.memory
@hypothesis.settings(max_examples=150)
@hypothesis.given(tree=trees, given=st.lists(calls, min_size=1, max_size=5))
def test_arithmetic_and_branches(tree, given):
    def body(x, n, m, z, w):
        names = {"n": n, "m": m, "z": z, "w": w, "rows": x.shape[0], "columns": x.shape[1]}
        return evaluate(tree, names)

    function = cl.function(body)
    for call in given:
        expected = outcome(body, call)
        assert outcome(function, call) == expected
        with cl.function_debugging():
            assert outcome(function, call) == expected
        for _, program in function._programs():
            try:
                found = outcome(lambda *values: Interpreter(program).run(values), call)  # noqa: B023
            except Unknown:
                assert isinstance(expected, type)  # this call raised, and left no path
            else:
                assert found == expected
    # Earlier recordings are used again, in any order.
    for call in reversed(given):
        assert outcome(function, call) == outcome(body, call)


indices = st.one_of(
    st.none(),
    st.just(...),
    st.integers(-4, 4),
    st.builds(
        slice,
        st.none() | st.integers(-6, 6),
        st.none() | st.integers(-6, 6),
        st.none() | st.integers(1, 3),
    ),
)
steps = st.one_of(
    st.tuples(st.just("index"), st.lists(indices, min_size=1, max_size=4).map(tuple)),
    st.tuples(st.just("T"), st.none()),
    st.tuples(st.just("permute"), st.integers(0, 5)),
    st.tuples(st.just("reshape"), st.sampled_from([(-1,), (2, -1), (-1, 3), (1, -1, 1)])),
)


def looked_at(x, moves, permute, reshape):
    for name, what in moves:
        if name == "index":
            x = x[what]
        elif name == "T":
            x = x.T
        elif name == "permute":
            x = permute(x, what % x.ndim if x.ndim else 0)
        else:
            x = reshape(x, what)
    return x


def roll(rank, by):
    return [(axis + by) % rank for axis in range(rank)]


def plainly(x, shape):
    if not x.flags.c_contiguous:
        raise ValueError("not contiguous")
    if x.size == 0 and math.prod(size for size in shape if size != -1) != 0:
        return x.reshape(tuple(0 if size == -1 else size for size in shape))
    return x.reshape(shape)


@hypothesis.settings(max_examples=100)
@hypothesis.given(
    moves=st.lists(steps, max_size=4).map(tuple),
    shapes=st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=4),
)
def test_views(moves, shapes):
    @cl.function
    def view(x):
        found = looked_at(
            x,
            moves,
            lambda x, by: x.permute(roll(x.ndim, by)) if x.ndim else x,
            lambda x, shape: x.reshape(shape),
        )
        return found, found.shape, found.size, found.is_contiguous()

    for shape in shapes:
        x = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
        try:
            expected = looked_at(
                x, moves, lambda x, by: x.transpose(roll(x.ndim, by)) if x.ndim else x, plainly
            )
        except (ValueError, IndexError) as error:
            for _ in range(2):
                with pytest.raises(type(error)):
                    view(x)
            continue
        answers = [view(x), view(x)]
        with cl.function_debugging():
            answers.append(view(x))
        # NumPy before 2.3 omits the strides of a contiguous array in DLPack. If its strides are
        # unusual, the program had other strides than the interpreter.
        if min(shape) > 1 or np.lib.NumpyVersion(np.__version__) >= "2.3.0":
            answers += [Interpreter(program).run((x,)) for _, program in view._programs()]
        for found, sizes, size, is_contiguous in answers:
            np.testing.assert_array_equal(np.asarray(found), expected)
            assert sizes == expected.shape
            assert size == expected.size
            assert is_contiguous == expected.flags.c_contiguous
