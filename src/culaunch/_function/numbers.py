"""Symbolic numbers: what shapes and Python numbers are while a body is traced."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from culaunch._base.places import here
from culaunch._function.opcodes import MATH_NUMBER, TWO_OPERANDS
from culaunch._function.record import Record, Register, escaped

if TYPE_CHECKING:
    from collections.abc import Callable

    Plain = bool | int | float

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class Number:
    """A number of a call, while its body is traced.

    Operations record instructions. Asking for the number itself (``bool``, ``int``, ``hash``, a
    loop's ``range``) answers for this call, and guards that later calls answer the same.
    """

    __slots__ = ("_record", "_register")

    # NumPy's operators then leave it alone.
    __array_ufunc__ = None

    def __init__(self, record: Record, register: Register) -> None:
        self._record = record
        self._register = register

    @property
    def hint(self) -> Plain:
        """Its value in the call that is traced."""
        return self._record.hints[self._register]

    def __repr__(self) -> str:
        name = self._record.names.get(self._register, "number")
        return f"<{name}, {self.hint!r} in this call>"

    def _shown(self) -> str:
        return f"{_WORDS[type(self)]}, {self.hint!r} in this call"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"at {here().text()}: a number of a traced call cannot be pickled or copied away"
        )

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, _: object) -> Number:
        return self

    def pin(self) -> Any:
        """Return the value in this call; a call with another one takes another path."""
        raise NotImplementedError

    # Text has the number of this call: one path for each. A check's message has a token instead.

    def __str__(self) -> str:
        return self.__format__("")

    def __format__(self, spec: str) -> str:
        token = self._record.token(self._register, spec)
        return format(self.pin(), spec) if token is None else token

    def __hash__(self) -> int:
        return hash(self.pin())

    # fmt: off
    def __add__(self, other: object) -> Any: return binary("add", self, other)
    def __radd__(self, other: object) -> Any: return binary("add", other, self)
    def __sub__(self, other: object) -> Any: return binary("sub", self, other)
    def __rsub__(self, other: object) -> Any: return binary("sub", other, self)
    def __mul__(self, other: object) -> Any: return binary("mul", self, other)
    def __rmul__(self, other: object) -> Any: return binary("mul", other, self)
    def __truediv__(self, other: object) -> Any: return binary("truediv", self, other)
    def __rtruediv__(self, other: object) -> Any: return binary("truediv", other, self)
    def __floordiv__(self, other: object) -> Any: return binary("floordiv", self, other)
    def __rfloordiv__(self, other: object) -> Any: return binary("floordiv", other, self)
    def __mod__(self, other: object) -> Any: return binary("mod", self, other)
    def __rmod__(self, other: object) -> Any: return binary("mod", other, self)
    def __divmod__(self, other: object) -> Any: return _divmod(self, other)
    def __rdivmod__(self, other: object) -> Any: return _divmod(other, self)
    def __lshift__(self, other: object) -> Any: return binary("lshift", self, other)
    def __rlshift__(self, other: object) -> Any: return binary("lshift", other, self)
    def __rshift__(self, other: object) -> Any: return binary("rshift", self, other)
    def __rrshift__(self, other: object) -> Any: return binary("rshift", other, self)
    def __and__(self, other: object) -> Any: return binary("and", self, other)
    def __rand__(self, other: object) -> Any: return binary("and", other, self)
    def __or__(self, other: object) -> Any: return binary("or", self, other)
    def __ror__(self, other: object) -> Any: return binary("or", other, self)
    def __xor__(self, other: object) -> Any: return binary("xor", self, other)
    def __rxor__(self, other: object) -> Any: return binary("xor", other, self)
    def __lt__(self, other: object) -> Any: return compare("LT", self, other)
    def __le__(self, other: object) -> Any: return compare("LE", self, other)
    def __gt__(self, other: object) -> Any: return compare("GT", self, other)
    def __ge__(self, other: object) -> Any: return compare("GE", self, other)
    def __eq__(self, other: object) -> Any: return compare("EQ", self, other)
    def __ne__(self, other: object) -> Any: return compare("NE", self, other)
    def __rpow__(self, other: object) -> Any: return power(other, self)
    # fmt: on

    def __pow__(self, other: object, modulo: object = None) -> Any:
        if modulo is not None:
            return pow(self.pin(), plain(other), plain(modulo))
        return power(self, other)

    # Python's numbers have these, too.

    @property
    def real(self) -> Any:
        """Itself."""
        return self

    def conjugate(self) -> Any:
        """Return itself."""
        return self


class SymInt(Number):
    """A symbolic int: 64 bits, and an error past them."""

    __slots__ = ()

    # isinstance(n, int) is true wherever it is asked.
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return int

    def pin(self) -> int:
        value = int(self.hint)
        self._record.pin(self._register, "EQ", value)
        return value

    def __bool__(self) -> bool:
        return bool(compare("NE", self, 0))

    def __index__(self) -> int:
        return self.pin()

    def __int__(self) -> int:
        return self.pin()

    def __float__(self) -> float:
        return float(self.pin())

    def __complex__(self) -> complex:
        return complex(self.pin())

    def __neg__(self) -> Any:
        return _int_unary("NEG", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _int_unary("ABS", self)

    def __invert__(self) -> Any:
        return _int_unary("INVERT", self)

    def __trunc__(self) -> Any:
        return self

    def __floor__(self) -> Any:
        return self

    def __ceil__(self) -> Any:
        return self

    def __round__(self, digits: object = None) -> Any:
        if digits is None or (isinstance(digits, int) and digits >= 0):
            return self
        return round(self.pin(), plain(digits))

    def bit_length(self) -> Any:
        """Return how many bits it needs, without the sign."""
        return _int_unary("BIT_LENGTH", self)

    def bit_count(self) -> int:
        """Return the ones in this call's value: one path for each value."""
        return self.pin().bit_count()

    def is_integer(self) -> bool:
        """Return True."""
        return True

    @property
    def numerator(self) -> Any:
        """Itself."""
        return self

    @property
    def denominator(self) -> int:
        """One."""
        return 1


class SymFloat(Number):
    """A symbolic float: a double."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return float

    def pin(self) -> float:
        value = float(self.hint)
        self._record.pin(self._register, "FEQ", value)
        return value

    def __bool__(self) -> bool:
        return bool(compare("NE", self, 0.0))

    def __float__(self) -> float:
        return self.pin()

    def __int__(self) -> int:
        return int(self.pin())

    def __complex__(self) -> complex:
        return complex(self.pin())

    def __neg__(self) -> Any:
        return _float_unary("FNEG", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _float_unary("FABS", self)

    def __trunc__(self) -> Any:
        return to_int("TRUNC", self)

    def __floor__(self) -> Any:
        return to_int("FLOOR", self)

    def __ceil__(self) -> Any:
        return to_int("CEIL", self)

    def __round__(self, digits: object = None) -> Any:
        return to_int("ROUND", self) if digits is None else round(self.pin(), plain(digits))

    def is_integer(self) -> Any:
        """Tell whether it is a whole number, of this call: one path for each value."""
        return self.pin().is_integer()

    def hex(self) -> str:
        """Write this call's value in hexadecimal: one path for each value."""
        return self.pin().hex()

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return this call's value as a fraction: one path for each value."""
        return self.pin().as_integer_ratio()


class SymBool(Number):
    """A condition: ``if`` asks it, and guards the answer."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return bool

    def pin(self) -> bool:
        return self._record.decide(self._register)

    def __bool__(self) -> bool:
        return self.pin()

    def __index__(self) -> int:
        return int(self.pin())

    def __int__(self) -> int:
        return int(self.pin())

    def __float__(self) -> float:
        return float(self.pin())

    def __neg__(self) -> Any:
        return -as_int(self)

    def __pos__(self) -> Any:
        return as_int(self)

    def __abs__(self) -> Any:
        return as_int(self)

    def __invert__(self) -> Any:
        return ~as_int(self)


def is_symbolic(value: object) -> bool:
    """Tell whether a value is a number of a trace."""
    return type(value) in _SYMBOLIC


def plain(value: Any) -> Any:
    """Return a number of this call as Python's."""
    return value.pin() if type(value) in _SYMBOLIC else value


def hint_of(value: Any) -> Any:
    """Return a number of this call without guarding it."""
    return value.hint if type(value) in _SYMBOLIC else value


def make(record: Record, register: Register) -> Any:
    """Return the number of a register; a plain one where it is known on this path."""
    known = record.pinned.get(register)
    if known is not None:
        return known
    kind = type(record.hints[register])
    return _OF_KIND[kind](record, register)


def register_of(record: Record, value: Any) -> Register:
    """Return the register of a number, plain or symbolic."""
    if type(value) in _SYMBOLIC:
        if value._record is not record:
            escaped()
        record.require_open()
        return value._register  # type: ignore[no-any-return]
    if type(value) is float or type(value) is bool:
        return record.constant(value)
    value = operator.index(value)
    if not _LEAST <= value <= _MOST:
        raise OverflowError(f"at {here().text()}: {value} does not fit 64 bits")
    return record.constant(value)


def as_int(value: Any) -> Any:
    """Return a bool as an int, symbolic or not."""
    if type(value) is SymBool:
        record = value._record
        return make(record, record.emit("B2I", (value._register,), int(value.hint)))
    return int(value) if type(value) is bool else value


def as_float(value: Any) -> Any:
    """Return a number as a float, symbolic or not."""
    value = as_int(_settled(value))
    if type(value) is SymInt:
        record = value._record
        return make(record, record.emit("I2F", (value._register,), float(value.hint)))
    return float(value) if isinstance(value, int) else value


def to_int(name: str, value: Any) -> Any:
    """Convert a float: FLOOR, CEIL, TRUNC or ROUND."""
    value = _settled(value)
    if type(value) is not SymFloat:
        return _TO_INT[name](value)
    record = value._record
    hint = _raising(record, lambda: _fitting(_TO_INT[name](value.hint)), name.lower())
    return make(record, record.emit(name, (value._register,), hint))


def binary(name: str, x: Any, y: Any) -> Any:
    """Apply a binary operator of Python to numbers, one of which at least is symbolic."""
    x, y = _settled(x), _settled(y)
    left, right = _kind(x), _kind(y)
    if left is None or right is None:
        return NotImplemented
    row = _BINARY[name]
    if type(x) not in _SYMBOLIC and type(y) not in _SYMBOLIC:
        return row.plain(x, y)
    if left == right == "b" and name in ("and", "or", "xor"):
        return _logic(name, x, y)
    if name == "truediv" and "f" not in (left, right):
        return _int_binary("TRUEDIV", row.plain, as_int(x), as_int(y))
    if "f" in (left, right):
        if row.float is None:
            return NotImplemented
        return _float_binary(row.float, row.plain, as_float(x), as_float(y))
    if row.int is None:
        return NotImplemented
    x, y = as_int(x), as_int(y)
    same = _identity(name, x, y)
    return _int_binary(row.int, row.plain, x, y) if same is None else same


def power(x: Any, y: Any) -> Any:
    """Return ``x ** y``; an int to a negative power is a float, which is guarded."""
    x, y = _settled(x), _settled(y)
    left, right = _kind(x), _kind(y)
    if left is None or right is None:
        return NotImplemented
    if type(x) not in _SYMBOLIC and type(y) not in _SYMBOLIC:
        return x**y
    if "f" not in (left, right):
        x, y = as_int(x), as_int(y)
        if bool(y >= 0):
            return _int_binary("POW", _bounded_power, x, y)
    return _float_binary("FPOW", _real_power, as_float(x), as_float(y))


def compare(name: str, x: Any, y: Any) -> Any:
    """Compare numbers; equality with anything else is false, as Python has it."""
    x, y = _settled(x), _settled(y)
    left, right = _kind(x), _kind(y)
    if left is None or right is None:
        return NotImplemented
    if type(x) not in _SYMBOLIC and type(y) not in _SYMBOLIC:
        return _COMPARE[name](x, y)
    if left == "f" != right:  # an int is compared with a float exactly
        x, y, left, right, name = y, x, right, left, _MIRRORED[name]
    function = _COMPARE[name]
    if left == right == "f":
        name = f"F{name}"
    elif right == "f":
        x, name = as_int(x), f"IF{name}"
    else:
        x, y = as_int(x), as_int(y)
        outside = _outside(name, x, y)
        if outside is not None:
            return outside
        if type(x) is type(y) and x._register == y._register and x._record is y._record:
            return function(0, 0)
    record = _record_of(x, y)
    operands = (register_of(record, x), register_of(record, y))
    return make(record, record.emit(name, operands, function(hint_of(x), hint_of(y))))


def negate(x: Any) -> Any:
    """Return ``not x`` of a condition, without deciding it."""
    x = _settled(x)
    if type(x) is not SymBool:
        return not x
    record = x._record
    return make(record, record.emit("NOT", (x._register,), not x.hint))


def select(condition: Any, x: Any, y: Any) -> Any:
    """Return x where a condition holds, and y elsewhere, without deciding it."""
    condition, x, y = _settled(condition), _settled(x), _settled(y)
    if type(condition) is not SymBool:
        return x if condition else y
    if "f" in (_kind(x), _kind(y)):
        x, y, name = as_float(x), as_float(y), "SELECT_F"
    elif _kind(x) == _kind(y) == "b":
        name = "SELECT_B"
    else:
        x, y, name = as_int(x), as_int(y), "SELECT_I"
    record = condition._record
    operands = (condition._register, register_of(record, x), register_of(record, y))
    return make(record, record.emit(name, operands, hint_of(x if condition.hint else y)))


def extreme(name: str, x: Any, y: Any) -> Any:
    """Return the lesser (MIN) or the greater (MAX) of two numbers."""
    x, y = _settled(x), _settled(y)
    if type(x) not in _SYMBOLIC and type(y) not in _SYMBOLIC:
        return min(x, y) if name == "MIN" else max(x, y)
    left, right = _kind(x), _kind(y)
    if left is None or right is None:
        raise TypeError(f"at {here().text()}: {name.lower()} of numbers takes numbers alone")
    function = min if name == "MIN" else max
    if left == right == "f":
        return _float_binary(f"F{name}", function, x, y)
    if "f" in (left, right):  # the result's type depends on the numbers: a path for each
        return (min(x, y)) if name == "MIN" else (max(x, y))
    return _int_binary(name, function, as_int(x), as_int(y))


def ceildiv(x: Any, y: Any) -> Any:
    """Return x / y, rounded up, for ints."""
    x, y = _settled(x), _settled(y)
    if type(x) not in _SYMBOLIC and type(y) not in _SYMBOLIC:
        return -(-x // y)
    if {_kind(x), _kind(y)} - {"i", "b"}:
        raise TypeError(f"at {here().text()}: ceildiv takes ints")
    if type(y) is int and y == 1:
        return as_int(x)
    return _int_binary("CEILDIV", lambda a, b: -(-a // b), as_int(x), as_int(y))


def next_power_of_2(x: Any) -> Any:
    """Return the least power of 2 that is not less than an int; 1 for what is less."""
    x = as_int(_settled(x))
    if type(x) is SymInt:
        return _int_unary("NEXT_POW2", x)
    x = operator.index(x)
    return 1 << (x - 1).bit_length() if x > 1 else 1


def math_function(name: str, *operands: Any) -> Any:
    """Apply a function of ``math`` to numbers, one of which at least is symbolic."""
    values = [as_float(value) for value in operands]
    function: Callable[..., Any] = getattr(math, name)
    if not any(type(value) in _SYMBOLIC for value in values):
        return function(*values)
    record = _record_of(*values)
    hint = _raising(record, lambda: function(*map(hint_of, values)), f"math.{name}", 1.0)
    registers = tuple(register_of(record, value) for value in values)
    second = () if name in TWO_OPERANDS else (-1,)
    return make(record, record.emit("MATH", (MATH_NUMBER[name], *registers, *second), hint))


def classify(name: str, value: Any) -> Any:
    """Tell whether a number is NaN, infinite or finite: ISNAN, ISINF or ISFINITE."""
    value = _settled(value)
    if type(value) is not SymFloat:
        return name == "ISFINITE" if type(value) in _SYMBOLIC else _CLASSES[name](value)
    record = value._record
    return make(record, record.emit(name, (value._register,), _CLASSES[name](value.hint)))


def _shifted(x: int, y: int) -> int:
    if x != 0 and y > 63:
        raise _overflow(f"{x} << {y}")
    return x << y


class _Row:
    def __init__(
        self, int_: str | None, float_: str | None, plain_: Callable[[Any, Any], Any]
    ) -> None:
        self.int, self.float, self.plain = int_, float_, plain_


_BINARY = {
    "add": _Row("ADD", "FADD", operator.add),
    "sub": _Row("SUB", "FSUB", operator.sub),
    "mul": _Row("MUL", "FMUL", operator.mul),
    "truediv": _Row(None, "FDIV", operator.truediv),
    "floordiv": _Row("FLOORDIV", "FFLOORDIV", operator.floordiv),
    "mod": _Row("MOD", "FMOD", operator.mod),
    "lshift": _Row("SHL", None, _shifted),
    "rshift": _Row("SHR", None, operator.rshift),
    "and": _Row("AND", None, operator.and_),
    "or": _Row("OR", None, operator.or_),
    "xor": _Row("XOR", None, operator.xor),
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le,
    "GT": operator.gt, "GE": operator.ge,
}  # fmt: skip
_MIRRORED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
_TO_INT: dict[str, Callable[[float], int]] = {
    "FLOOR": math.floor, "CEIL": math.ceil, "TRUNC": math.trunc, "ROUND": round
}  # fmt: skip
_CLASSES: dict[str, Callable[[float], bool]] = {
    "ISNAN": math.isnan, "ISINF": math.isinf, "ISFINITE": math.isfinite
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {
    "NEG": operator.neg, "ABS": abs, "INVERT": operator.invert, "BIT_LENGTH": int.bit_length,
    "NEXT_POW2": next_power_of_2,
    "FNEG": operator.neg, "FABS": abs,
}  # fmt: skip
_SYMBOLIC = frozenset((SymInt, SymFloat, SymBool))
_OF_KIND: dict[type, type[Number]] = {int: SymInt, float: SymFloat, bool: SymBool}
_WORDS: dict[type, str] = {SymInt: "an int", SymFloat: "a float", SymBool: "a bool"}
_KINDS = {SymInt: "i", SymFloat: "f", SymBool: "b", int: "i", float: "f", bool: "b"}


def _kind(value: Any) -> str | None:
    found = _KINDS.get(type(value))
    if found is None and isinstance(value, (int, float)):  # an enum.IntEnum, numpy.float64
        return "i" if isinstance(value, int) else "f"
    return found


def _settled(value: Any) -> Any:
    """Return a symbolic number whose value is known on this path as a plain one."""
    if type(value) in _SYMBOLIC:
        known = value._record.pinned.get(value._register)
        return value if known is None else known
    return value


def _record_of(*values: Any) -> Record:
    for value in values:
        if type(value) in _SYMBOLIC:
            return value._record  # type: ignore[no-any-return]
    raise AssertionError("no value is symbolic")


def _int_unary(name: str, x: SymInt) -> Any:
    x = _settled(x)
    function = _UNARY[name]
    if type(x) is not SymInt:
        return function(x)
    record = x._record
    hint = _raising(record, lambda: _fitting(function(x.hint)), name.lower())
    return make(record, record.emit(name, (x._register,), hint))


def _float_unary(name: str, x: SymFloat) -> Any:
    x = _settled(x)
    if type(x) is not SymFloat:
        return _UNARY[name](x)
    record = x._record
    return make(record, record.emit(name, (x._register,), _UNARY[name](x.hint)))


def _int_binary(name: str, function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    if type(x) not in _SYMBOLIC and type(y) not in _SYMBOLIC:
        return function(x, y)
    record = _record_of(x, y)
    operands = (register_of(record, x), register_of(record, y))
    a, b = hint_of(x), hint_of(y)
    hint = _raising(record, lambda: _fitting(function(a, b)), f"{name.lower()} of {a} and {b}")
    return make(record, record.emit(name, operands, hint))


def _float_binary(name: str, function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    if type(x) not in _SYMBOLIC and type(y) not in _SYMBOLIC:
        return function(x, y)
    record = _record_of(x, y)
    operands = (register_of(record, x), register_of(record, y))
    a, b = hint_of(x), hint_of(y)
    hint = _raising(record, lambda: function(a, b), f"{name[1:].lower()} of {a} and {b}", 1.0)
    return make(record, record.emit(name, operands, hint))


def _logic(name: str, x: Any, y: Any) -> Any:
    record = _record_of(x, y)
    a, b = hint_of(x), hint_of(y)
    operands = (register_of(record, x), register_of(record, y))
    hint = bool(_BINARY[name].plain(a, b))
    return make(record, record.emit(f"{name.upper()}_B", operands, hint))


def _identity(name: str, x: Any, y: Any) -> Any:
    """Return what an operation gives without one: ``n * 1``, ``n + 0``."""
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
    """Compare with an int that no register holds: every number of a call is on one side."""
    for value, is_right in ((y, True), (x, False)):
        if type(value) not in _SYMBOLIC and not _LEAST <= value <= _MOST:
            is_less = (value > 0) == is_right  # the symbolic one, where it stands on the left
            return _COMPARE[name](0, 1) if is_less else _COMPARE[name](1, 0)
    return None


def _fitting(value: int) -> int:
    if not _LEAST <= value <= _MOST:
        raise _overflow(str(value) if abs(value) < 1 << 128 else "a number of more than 128 bits")
    return value


def _overflow(what: str) -> OverflowError:
    return OverflowError(f"{what} does not fit 64 bits")


def _raising(record: Record, function: Callable[[], Any], what: str, other: float = 1) -> Any:
    """Compute a hint; what Python refuses is refused with the line."""
    try:
        return function()
    except (ArithmeticError, ValueError) as error:
        if not record.has_hints:
            return other
        raise type(error)(f"at {here().text()}: {what}: {error}") from None


def _bounded_power(x: int, y: int) -> int:
    if abs(x) > 1 and y > 64:
        raise _overflow(f"{x} ** {y}")
    return int(x**y)


def _real_power(x: float, y: float) -> float:
    result: float | complex = x**y
    if isinstance(result, complex):
        raise ValueError("a negative number to a fractional power is complex")
    return result


def _divmod(x: Any, y: Any) -> Any:
    quotient = binary("floordiv", x, y)
    if quotient is NotImplemented:
        return NotImplemented
    return quotient, binary("mod", x, y)


def is_negative(value: Any) -> bool:
    """Tell whether a symbolic int is negative in the call that is traced."""
    return bool(value._record.has_hints and value.hint < 0)
