"""Symbolic numbers: registers of a record, with the values of the call as hints."""

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

    Operations record instructions. Asking for the number itself (``bool``, ``int``, ``hash``, a
    loop's ``range``) answers for this call, and guards that later calls answer the same.
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
        """Its value in the call that is traced."""
        return self._record.hints[self._register]

    def _shown(self) -> str:
        return f"{self.words}, {self.hint!r} in this call"

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

    # The door to texts and other objects. Text has the number of this call: one path for each. A
    # check's message has a token instead.

    def __repr__(self) -> str:
        if not self._record.is_open:  # a debugger, or the report of an error, shows it
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
        # What Python's own number has besides operators, of this call: to_bytes(), hex().
        if name.startswith("_") or name == "node":
            raise AttributeError(name)
        value = self.hint
        if not hasattr(value, name):
            raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")
        return getattr(self.pin(), name)


# The classes of the three kinds, by the type of the number that they stand for: numbers.py has
# them.
KINDS: dict[type, type[Number]] = {}


def register_kind(plain_: type) -> Callable[[type[Number]], type[Number]]:
    """Make a class the one of symbolic numbers of a kind."""

    def add(kind: type[Number]) -> type[Number]:
        KINDS[plain_] = kind
        return kind

    return add


def is_symbolic(value: object) -> bool:
    """Tell whether a value is a number of a trace."""
    return issubclass(type(value), Number)


def foreign_kind(value: object) -> type | None:
    """Return the value behind a framework's symbolic number, or None if it is not one.

    These numbers come from torch, when a body runs on shapes only.
    """
    return _FOREIGN.get(type(value).__name__) if hasattr(value, "node") else None


_FOREIGN: dict[str, type] = {"SymInt": int, "SymFloat": float, "SymBool": bool}


def plain(value: Any) -> Any:
    """Return a number of this call as Python's."""
    return value.pin() if is_symbolic(value) else value


def hint_of(value: Any) -> Any:
    """Return a number of this call without guarding it."""
    return value.hint if is_symbolic(value) else value


def make(record: Record, register: Register) -> Any:
    """Return the number of a register; a plain one where it is known on this path."""
    # Where the path has guarded a value, the number is Python's own from then on: code that uses it
    # records nothing.
    known = record.pinned.get(register)
    if known is not None:
        return known
    kind = type(record.hints[register])
    return KINDS[kind](record, register)


def register_of(record: Record, value: Any) -> Register:
    """Return the register of a number, plain or symbolic."""
    if is_symbolic(value):
        # A number of another trace, which a body has kept.
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
    """Return "i", "f" or "b" of a number, symbolic or not, and None of anything else."""
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
    """Return a symbolic number whose value is known on this path as a plain one."""
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
    """Tell whether a symbolic int is negative in the call that is traced."""
    return bool(value._record.has_hints and value.hint < 0)


def fitting(value: int) -> int:
    if not LEAST <= value <= MOST:
        raise overflow(str(value) if abs(value) < 1 << 128 else "a number of more than 128 bits")
    return value


def overflow(what: str) -> OverflowError:
    return OverflowError(f"{what} does not fit 64 bits")


def raising(record: Record, function: Callable[[], Any], what: str, other: float = 1) -> Any:
    """Compute a hint; what no register holds is refused with the line, whatever the body catches.

    Python's ints have no limit: a body in plain Python does not raise there.
    """
    try:
        return function()
    except (ArithmeticError, ValueError) as error:
        # Values that are made up may divide by zero where no call does: the path goes on with
        # another.
        if not record.has_hints:
            return other
        raise record.refuse(type(error)(f"at {here().text()}: {what}: {error}")) from None


_PLAIN = {int: "i", float: "f", bool: "b"}
