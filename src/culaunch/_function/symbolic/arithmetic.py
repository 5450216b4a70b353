"""Arithmetic of symbolic numbers: Python's operators as instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._function.programs.opcodes import COMPUTE
from culaunch._function.symbolic.needs import require
from culaunch._function.symbolic.symbols import (
    LEAST,
    MOST,
    fitting,
    hint_of,
    is_kind,
    is_symbolic,
    kind_of,
    make,
    overflow,
    raising,
    record_of,
    register_of,
    settled,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def binary(name: str, x: Any, y: Any) -> Any:
    """Apply a binary operator of Python to numbers, at least one of them symbolic."""
    x, y = settled(x), settled(y)
    left, right = kind_of(x), kind_of(y)
    if left is None or right is None:
        return NotImplemented
    row = _BINARY[name]
    if not is_symbolic(x) and not is_symbolic(y):
        return row.plain(x, y)
    # Join conditions without deciding them: `a & b` is one guard, and `a and b` would be two paths.
    if left == right == "b" and name in ("and", "or", "xor"):
        return _logic(name, x, y)
    # Python's division of ints rounds once. Converting both operands first would round three times.
    if name == "truediv" and "f" not in (left, right):
        return int_binary("TRUEDIV", row.plain, as_int(x), as_int(y))
    if "f" in (left, right):
        if row.float is None:
            return NotImplemented
        return float_binary(row.float, row.plain, as_float(x), as_float(y))
    if row.int is None:
        return NotImplemented
    x, y = as_int(x), as_int(y)
    # Save the instruction of `n * 1` and the like, which are common in code for shapes.
    same = _identity(name, x, y)
    return int_binary(row.int, row.plain, x, y) if same is None else same


def power(x: Any, y: Any) -> Any:
    """Return ``x ** y``; an int to a negative power is a float, which is guarded."""
    x, y = settled(x), settled(y)
    left, right = kind_of(x), kind_of(y)
    if left is None or right is None:
        return NotImplemented
    if not is_symbolic(x) and not is_symbolic(y):
        return x**y
    if "f" not in (left, right):
        x, y = as_int(x), as_int(y)
        # The type of the result depends on the number: an int, or a float for a negative power. The
        # sign is therefore a guard with two paths.
        if bool(y >= 0):
            return int_binary("POW", _bounded_power, x, y)
    return float_binary("FPOW", _real_power, as_float(x), as_float(y))


def compare(name: str, x: Any, y: Any) -> Any:
    """Compare numbers. As in Python, equality with anything else is false."""
    x, y = settled(x), settled(y)
    left, right = kind_of(x), kind_of(y)
    if left is None or right is None:
        return NotImplemented
    if not is_symbolic(x) and not is_symbolic(y):
        return COMPUTE[name](x, y)
    if left == "f" != right:  # an int and a float are compared exactly
        x, y, left, right, name = y, x, right, left, _MIRRORED[name]
    function = COMPUTE[name]
    if left == right == "f":
        name = f"F{name}"
    elif right == "f":
        x, name = as_int(x), f"IF{name}"
    else:
        x, y = as_int(x), as_int(y)
        outside = _outside(name, x, y)
        if outside is not None:
            return outside
        # Comparing a register with itself is not a decision: x == x has one result in every call.
        is_both = is_symbolic(x) and is_symbolic(y)
        if is_both and x._register == y._register and x._record is y._record:
            return function(0, 0)
    record = record_of(x, y)
    operands = (register_of(record, x), register_of(record, y))
    return make(record, record.emit(name, operands, function(hint_of(x), hint_of(y))))


def negate(x: Any) -> Any:
    """Return ``not x`` for a condition, without deciding it."""
    x = settled(x)
    if not is_kind(x, "b"):
        return not x
    record = x._record
    return make(record, record.emit("NOT", (x._register,), not x.hint))


def as_int(value: Any) -> Any:
    """Return a bool as an int, symbolic or not."""
    if is_kind(value, "b"):
        record = value._record
        return make(record, record.emit("B2I", (value._register,), int(value.hint)))
    return int(value) if type(value) is bool else value


def as_float(value: Any) -> Any:
    """Return a number as a float, symbolic or not."""
    value = as_int(settled(value))
    if is_kind(value, "i"):
        record = value._record
        return make(record, record.emit("I2F", (value._register,), float(value.hint)))
    return float(value) if isinstance(value, int) else value


def to_int(name: str, value: Any) -> Any:
    """Convert a float: FLOOR, CEIL, TRUNC or ROUND."""
    value = settled(value)
    if not is_kind(value, "f"):
        return COMPUTE[name](value)
    # The hint is computed as Python does, but must fit the native code's 64 bits.
    return _computed(name, (value,), lambda a: fitting(COMPUTE[name](a)), name.lower(), 1)


def divided(x: Any, y: Any) -> Any:
    quotient = binary("floordiv", x, y)
    if quotient is NotImplemented:
        return NotImplemented
    return quotient, binary("mod", x, y)


def int_unary(name: str, x: Any) -> Any:
    x = settled(x)
    function = COMPUTE[name]
    if not is_kind(x, "i"):
        return function(x)
    return _computed(name, (x,), lambda a: fitting(function(a)), name.lower(), 1)


def float_unary(name: str, x: Any) -> Any:
    x = settled(x)
    if not is_kind(x, "f"):
        return COMPUTE[name](x)
    record = x._record
    return make(record, record.emit(name, (x._register,), COMPUTE[name](x.hint)))


def int_binary(name: str, function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    if not is_symbolic(x) and not is_symbolic(y):
        return function(x, y)
    return _computed(name, (x, y), lambda a, b: fitting(function(a, b)), name.lower(), 1)


def float_binary(name: str, function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    if not is_symbolic(x) and not is_symbolic(y):
        return function(x, y)
    return _computed(name, (x, y), function, name[1:].lower(), 1.0)


def _computed(
    name: str, values: tuple[Any, ...], function: Callable[..., Any], what: str, other: float
) -> Any:
    """Record an instruction that may raise. An equal instruction returns the same number."""
    record = record_of(*values)
    operands = tuple(register_of(record, one) for one in values)
    known = record.recorded(name, operands)
    if known is None:
        require(record, name, values, what)
        hints = tuple(map(hint_of, values))
        numbers = " and ".join(map(str, hints))
        hint = raising(record, lambda: function(*hints), f"{what} of {numbers}", other)
        known = record.emit(name, operands, hint)
    return make(record, known)


def _logic(name: str, x: Any, y: Any) -> Any:
    record = record_of(x, y)
    a, b = hint_of(x), hint_of(y)
    operands = (register_of(record, x), register_of(record, y))
    op = f"{name.upper()}_B"
    return make(record, record.emit(op, operands, bool(COMPUTE[op](a, b))))


def _identity(name: str, x: Any, y: Any) -> Any:
    """Return the result of an operation that changes nothing: ``n * 1``, ``n + 0``."""
    if type(y) is int:
        if (y == 0 and name in ("add", "sub", "lshift", "rshift")) or (
            y == 1 and name in ("mul", "floordiv")
        ):
            return x
        if y == 0 and name == "mul":
            return 0
    if type(x) is int:
        if (x == 0 and name == "add") or (x == 1 and name == "mul"):
            return y
        if x == 0 and name == "mul":
            return 0
    return None


def _outside(name: str, x: Any, y: Any) -> bool | None:
    """Compare with an int that no register can hold. All numbers of calls are on one side of it."""
    for value, is_right in ((y, True), (x, False)):
        if not is_symbolic(value) and not LEAST <= value <= MOST:
            is_less = (value > 0) == is_right  # the symbolic number, if it is on the left
            return bool(COMPUTE[name](0, 1) if is_less else COMPUTE[name](1, 0))
    return None


def _shifted(x: int, y: int) -> int:
    # Check before Python makes an int with as many bits as a size may say.
    if x != 0 and y > 63:
        raise overflow(f"{x} << {y}")
    return x << y


def _bounded_power(x: int, y: int) -> int:
    if abs(x) > 1 and y > 64:
        raise overflow(f"{x} ** {y}")
    return int(x**y)


def _real_power(x: float, y: float) -> float:
    result: float | complex = x**y
    if isinstance(result, complex):
        raise ValueError("a negative number to a fractional power is complex")
    return result


class _Row(NamedTuple):
    """The instructions of an operator, for ints and for floats."""

    int: str | None
    float: str | None

    @property
    def plain(self) -> Callable[[Any, Any], Any]:
        """The function on known numbers."""
        return _shifted if self.int == "SHL" else COMPUTE[str(self.int or self.float)]


_BINARY = {
    "add": _Row("ADD", "FADD"),
    "sub": _Row("SUB", "FSUB"),
    "mul": _Row("MUL", "FMUL"),
    "truediv": _Row(None, "FDIV"),
    "floordiv": _Row("FLOORDIV", "FFLOORDIV"),
    "mod": _Row("MOD", "FMOD"),
    "lshift": _Row("SHL", None),
    "rshift": _Row("SHR", None),
    "and": _Row("AND", None),
    "or": _Row("OR", None),
    "xor": _Row("XOR", None),
}
_MIRRORED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
