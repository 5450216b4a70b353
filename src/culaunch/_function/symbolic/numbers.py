"""Symbolic numbers, which represent shapes and Python numbers while a body is traced.

Operations record instructions. Using the value itself (``bool``, ``int``, ``hash``, a loop's
``range``) returns this call's value, and guards it for later calls.
"""

from __future__ import annotations

from typing import Any

from culaunch._function.symbolic.arithmetic import (
    as_int,
    binary,
    compare,
    divided,
    float_unary,
    int_unary,
    power,
    to_int,
)
from culaunch._function.symbolic.symbols import Number, plain, register_kind


class Operators(Number):
    """A number with Python's operators."""

    __slots__ = ()

    # A class with __eq__ loses __hash__.
    __hash__ = Number.__hash__

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
    def __divmod__(self, other: object) -> Any: return divided(self, other)
    def __rdivmod__(self, other: object) -> Any: return divided(other, self)
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


@register_kind(int)
class SymInt(Operators):
    """A symbolic int with 64 bits; larger values are errors."""

    __slots__ = ()

    kind = "i"
    words = "an int"

    # isinstance(n, int) is then true everywhere.
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
        return int_unary("NEG", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return int_unary("ABS", self)

    def __invert__(self) -> Any:
        return int_unary("INVERT", self)

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
        """Return the number of bits that it needs, without the sign."""
        return int_unary("BIT_LENGTH", self)

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


@register_kind(float)
class SymFloat(Operators):
    """A symbolic float: a double."""

    __slots__ = ()

    kind = "f"
    words = "a float"

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
        return float_unary("FNEG", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return float_unary("FABS", self)

    def __trunc__(self) -> Any:
        return to_int("TRUNC", self)

    def __floor__(self) -> Any:
        return to_int("FLOOR", self)

    def __ceil__(self) -> Any:
        return to_int("CEIL", self)

    def __round__(self, digits: object = None) -> Any:
        return to_int("ROUND", self) if digits is None else round(self.pin(), plain(digits))


@register_kind(bool)
class SymBool(Operators):
    """A condition. An ``if`` reads it and guards the answer."""

    __slots__ = ()

    kind = "b"
    words = "a bool"

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

    def __round__(self, digits: Any = None) -> Any:
        return round(as_int(self), digits)

    def __floor__(self) -> Any:
        return as_int(self)

    def __ceil__(self) -> Any:
        return as_int(self)

    def __trunc__(self) -> Any:
        return as_int(self)

    def __getattr__(self, name: str) -> Any:
        # A Python bool has all members of an int.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(as_int(self), name)
