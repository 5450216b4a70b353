"""Constants in C, where a constant that selects a variant must be an ``int64_t``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_LEAST, _MOST = -(2**63), 2**63 - 1


def c_value(value: Any) -> str:
    """Return a constant as an expression of type ``int64_t``; None is -1.

    Raise ValueError if C cannot choose by it.
    """
    if value is None:
        return "INT64_C(-1)"
    if not isinstance(value, int):
        raise ValueError(
            f"C cannot choose by a constant of type {type(value).__name__}: make one set for each "
            "value"
        )
    if not _LEAST <= value <= _MOST:
        raise ValueError("C cannot choose by an integer of more than 64 bits")
    # C has no negative literals, and this number is too large without its sign.
    if value == _LEAST:
        return f"(-INT64_C({_MOST}) - 1)"
    return f"INT64_C({int(value)})"


def is_c_value(value: Any) -> bool:
    """Whether a constant is a 64-bit number, or None. The smallest number is reserved for "any"."""
    return value is None or (isinstance(value, int) and _LEAST < value <= _MOST)


def check_distinct(name: str, values: Iterable[Any]) -> None:
    """Refuse different constants with the same number in C, which would select the wrong variant.

    Raises
    ------
    ValueError
        Naming two of them.
    """
    known: dict[str, Any] = {}
    for value in filter(is_c_value, values):
        # None is -1 in C, and True is 1.
        other = known.setdefault(c_value(value), value)
        if repr(other) != repr(value):
            raise ValueError(
                f"{name} is {other!r} in one variant and {value!r} in another, which C cannot "
                "distinguish: make one set for each"
            )


def c_macro_value(value: int) -> str | None:
    """Return a constant for a macro, as simple as possible; None if C cannot express it."""
    number = int(value)
    if -(2**31) < number < 2**31:
        return str(number) if number >= 0 else f"({number})"
    return c_value(number) if _LEAST <= number <= _MOST else None
