"""Symbolic numbers: registers of a record, with this call's values as hints."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from culaunch._base.places import here
from culaunch._function.programs.record import Record, Register, escaped

if TYPE_CHECKING:
    from collections.abc import Callable

    Plain = bool | int | float

LEAST, MOST = -(1 << 63), (1 << 63) - 1


class Number:
    """A number of a call, while its body is traced.

    Operations record instructions. Using the value itself (``bool``, ``int``, ``hash``, a loop's
    ``range``) returns this call's value, and guards it for later calls.
    """

    __slots__ = ("_record", "_register")

    kind = ""  # "i", "f" or "b"
    words = ""

    # NumPy's operators then return NotImplemented.
    __array_ufunc__ = None

    def __init__(self, record: Record, register: Register) -> None:
        self._record = record
        self._register = register

    @property
    def hint(self) -> Plain:
        """Its value in the traced call."""
        return self._record.hints[self._register]

    def _shown(self) -> str:
        return f"{self.words}, {self.hint!r} in this call"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"at {here().text()}: a number of a traced call cannot be pickled or copied: pass it "
            "as an argument"
        )

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, _: object) -> Number:
        return self

    def pin(self) -> Any:
        """Return this call's value, with a guard. A call with another value takes another path."""
        raise NotImplementedError

    # The conversion to texts and other objects. A text contains this call's number, so each value
    # is a path. A check's message contains a token instead.

    def __repr__(self) -> str:
        if not self._record.is_open:  # a debugger or an error report shows it
            name = self._record.names.get(self._register, "number")
            return f"<{name}, {self.hint!r} in a call that was recorded>"
        return self.__format__("")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        token = self._record.token(self._register, spec)
        return format(self.pin(), spec) if token is None else token

    def __hash__(self) -> int:
        return hash(self.pin())

    def __array__(self, dtype: Any = None, copy: object = None) -> Any:
        import numpy as np

        return np.array(self.pin(), dtype=dtype)

    def __getattr__(self, name: str) -> Any:
        # This call's other members of Python's number: to_bytes(), hex().
        if name.startswith("_") or name == "node":
            raise AttributeError(name)
        value = self.hint
        if not hasattr(value, name):
            raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")
        return getattr(self.pin(), name)


# The classes of the three kinds, by the type of number. numbers.py defines them.
KINDS: dict[type, type[Number]] = {}


def register_kind(plain_: type) -> Callable[[type[Number]], type[Number]]:
    """Register a class for the symbolic numbers of a kind."""

    def add(kind: type[Number]) -> type[Number]:
        KINDS[plain_] = kind
        return kind

    return add


def is_symbolic(value: object) -> bool:
    """Tell whether a value is a number of a trace."""
    return issubclass(type(value), Number)


def foreign_kind(value: object) -> type | None:
    """Return the value behind a framework's symbolic number, or None if it is not one.

    These numbers come from torch if a body runs on shapes only.
    """
    found = _FOREIGN.get(type(value).__name__)
    return found if found is not None and hasattr(value, "node") else None


_FOREIGN: dict[str, type] = {"SymInt": int, "SymFloat": float, "SymBool": bool}


def plain(value: Any) -> Any:
    """Return a number's value in this call as a Python number."""
    return value.pin() if is_symbolic(value) else value


def hint_of(value: Any) -> Any:
    """Return a number's value in this call without a guard."""
    return value.hint if is_symbolic(value) else value


def make(record: Record, register: Register) -> Any:
    """Return the number of a register, or a plain number if this path has fixed its value."""
    # If the path has guarded a value, it is a Python number from then on, and code that uses it
    # records nothing.
    known = record.pinned.get(register)
    if known is not None:
        return known
    kind = type(record.hints[register])
    return KINDS[kind](record, register)


def register_of(record: Record, value: Any) -> Register:
    """Return the register of a number, plain or symbolic."""
    if is_symbolic(value):
        # A body has kept another trace's number.
        if value._record is not record:
            escaped()
        record.require_open()
        return value._register  # type: ignore[no-any-return]
    if type(value) is float or type(value) is bool:
        return record.constant(value)
    value = operator.index(value)
    if not LEAST <= value <= MOST:
        raise record.refuse(OverflowError(f"at {here().text()}: {value} does not fit 64 bits"))
    return record.constant(value)


def kind_of(value: Any) -> str | None:
    """Return "i", "f" or "b" for a number, symbolic or not; None for other values."""
    if is_symbolic(value):
        return str(value.kind)
    found = _PLAIN.get(type(value))
    if found is None and isinstance(value, (int, float)):  # an enum.IntEnum, numpy.float64
        return "i" if isinstance(value, int) else "f"
    return found


def is_kind(value: Any, kind: str) -> bool:
    """Tell whether a value is a symbolic number of a kind."""
    return is_symbolic(value) and value.kind == kind


def settled(value: Any) -> Any:
    """Return a symbolic number as a plain one, if this path has fixed its value."""
    if is_symbolic(value):
        known = value._record.pinned.get(value._register)
        return value if known is None else known
    return value


def record_of(*values: Any) -> Record:
    for value in values:
        if is_symbolic(value):
            return value._record  # type: ignore[no-any-return]
    raise AssertionError("no value is symbolic")


def is_negative(value: Any) -> bool:
    """Tell whether a symbolic int is negative in the traced call."""
    return bool(value._record.has_hints and value.hint < 0)


def fitting(value: int) -> int:
    if not LEAST <= value <= MOST:
        raise overflow(str(value) if abs(value) < 1 << 128 else "a number of more than 128 bits")
    return value


def overflow(what: str) -> OverflowError:
    return OverflowError(f"{what} does not fit 64 bits")


def raising(record: Record, function: Callable[[], Any], what: str, other: float = 1) -> Any:
    """Compute a hint. Refuse a value that no register can hold, even if the body catches it.

    Python's ints have no limit: a body in plain Python does not raise there.
    """
    try:
        return function()
    except (ArithmeticError, ValueError) as error:
        # Made-up values may divide by zero although no call does. The path continues with another
        # value.
        if not record.has_hints:
            return other
        raise record.refuse(type(error)(f"at {here().text()}: {what}: {error}")) from None


_PLAIN = {int: "i", float: "f", bool: "b"}
