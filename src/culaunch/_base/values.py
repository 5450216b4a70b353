"""Numbers that are given, and how values are shown in messages. The extension calls this, too."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_LONGEST = 40


def show(value: object) -> str:
    """Describe a value: its type, and its repr if that is short."""
    shown = getattr(type(value), "_shown", None)
    if shown is not None:  # stand-ins in a function's body have a name
        return str(shown(value))
    name = type_name(value)
    text = _text(value)
    # Python raises an error for the text of an int with more than 4300 digits.
    if type(value) is int and text is None:
        return f"int of {value.bit_length()} bits"
    return f"{name} {text}" if text is not None and value is not None else name


def spell(value: object) -> str:
    """Show a value's text if it is short, otherwise its type."""
    if type(value) in (tuple, list) and len(value) <= 5:  # type: ignore[arg-type]
        items = ", ".join(map(spell, value))  # type: ignore[call-overload]
        if type(value) is list:
            return f"[{items}]"
        return f"({items},)" if len(value) == 1 else f"({items})"  # type: ignore[arg-type]
    text = _text(value)
    if text is None and type(value) not in _PLAIN:
        try:
            text = repr(value)
        except Exception:  # noqa: BLE001 - the message is of another error
            text = None
        if text is not None and (len(text) > 2 * _LONGEST or "\n" in text):
            text = None
    shown = show(value)
    return text if text is not None else f"{'an' if shown[0] in 'aeiou' else 'a'} {shown}"


def counted(number: int, noun: str) -> str:
    """Return ``1 byte``, ``2 bytes``: a number and its noun."""
    if number == 1:
        return f"1 {noun}"
    plural = {"entry": "entries", "axis": "axes", "launch": "launches"}.get(noun, f"{noun}s")
    return f"{number} {plural}"


def type_name(value: object) -> str:
    """Return ``torch.Tensor``: the package and the class."""
    kind = type(value)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"


def field_lines(record: Any) -> str:
    """Return the fields of a dataclass, one on each line, with their values in a column."""
    fields = [(one.name, getattr(record, one.name)) for one in dataclasses.fields(record)]
    width = max(len(name) for name, _ in fields)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in fields)


def as_html(value: object) -> str:
    """Return its text as a notebook shows it: with its columns."""
    import html

    return f"<pre>{html.escape(str(value))}</pre>"


def fits(value: Any, name: str, bits: int) -> int:
    """Return an int that fits a number of bits, including its sign.

    Raises
    ------
    TypeError, OverflowError
        If it does not; the message has the name.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be an int (got {spell(value)})")
    number = operator.index(value)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise OverflowError(f"{name} must fit {bits} bits (got {spell(number)})")
    return number


def _text(value: object) -> str | None:
    """Write a plain value, if it is short: very large ints cannot be written at all."""
    if type(value) not in _PLAIN or (type(value) is int and value.bit_length() > 128):
        return None
    text = repr(value)
    return text if len(text) <= _LONGEST else None
