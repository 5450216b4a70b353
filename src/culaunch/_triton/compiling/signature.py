"""Signatures in text form: ``"*fp32:16, *fp32:16, i32, 1024"``."""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._triton.calls.object_kinds import type_name
from culaunch._triton.variants.constants import SavedType, like_tuple, named_tuple
from culaunch._triton.variants.parameter_sources import SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator

_DESCRIPTOR = re.compile(r"tensordesc<\s*([a-z0-9]+)\s*\[([\d,\s]+)\]\s*>")
_FIELD = re.compile(r"(\w+)\s*=\s*(.*)", re.DOTALL)
_POINTED = {*SIZES, "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16", "fp8e4b15"}


@dataclass(frozen=True)
class Argument:
    """One argument of a signature."""

    type: Any
    """Triton's type, ``"constexpr"`` for a folded argument, or a tuple of these for a tuple."""
    key: Any
    """Triton's key for it: None, ``""``, ``"D"``, 1 or a tuple."""
    value: Any = None
    """The value of a constant."""

    @property
    def is_constant(self) -> bool:
        """Whether the whole argument is folded."""
        return bool(self.type == "constexpr")


def parse_signature(text: str) -> tuple[Argument, ...]:
    """Parse a signature.

    Parameters
    ----------
    text : str
        One entry for each argument, separated by commas. An entry is a type (``i32``, ``fp32``,
        ``*fp16``, ``tensordesc<fp16[64, 64]>``), ``None``, or a constant's value, such as 64 or
        ``tl.float16``. ``:16`` after a type means divisible by 16, and ``i32:1`` is an int that is
        always 1. Parentheses enclose a tuple of entries; with ``name=type`` it is a named one.

    Raises
    ------
    ValueError
        If an entry is invalid; the message names it.
    """
    return tuple(_parse_entry(entry) for entry in _split(text))


def make_constant(value: Any) -> Argument:
    """Make the argument of a constant."""
    return Argument("constexpr", None, value)


def _parse_entry(text: str) -> Argument:
    if text.startswith("("):
        if not text.endswith(")"):
            raise ValueError(f"the tuple {text!r} in the signature is not closed")
        entries = list(_split(text[1:-1]))
        fields = _fields_of(entries, text)
        if fields is not None:
            entries = [entry.partition("=")[2].strip() for entry in entries]
        items = [_parse_entry(entry) for entry in entries]
        # Any named tuple with these fields works, because only the fields are read.
        kind = () if fields is None else named_tuple(fields)(*fields)
        return Argument(
            like_tuple(kind, (item.type for item in items)),
            tuple(item.key for item in items),
            tuple(item.value for item in items),
        )
    match = _DESCRIPTOR.fullmatch(text)
    if match:
        _check_element(match[1], text)
        block = ", ".join(size.strip() for size in match[2].split(","))
        return Argument(f"tensordesc<{match[1]}[{block}]>", None)
    kind, _, hint = text.partition(":")
    kind, hint = kind.strip(), hint.strip()
    if kind.startswith("*") or kind in SIZES:
        if kind.startswith("*"):
            _check_element(kind[1:].removeprefix("k"), text)
        return _with_hint("u1" if kind == "i1" else kind, hint, text)
    place, _, name = text.rpartition(".")
    if place in ("tl", "triton.language"):
        _check_element(type_name(name), text)
        return make_constant(SavedType(type_name(name)))
    try:
        # Accept only literals, because a signature may come from a file.
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise ValueError(
            f"{text!r} in the signature is not a type (such as i32, fp32, *fp16), a constant or a "
            "tuple"
        ) from None
    return make_constant(value)


def _fields_of(entries: list[str], text: str) -> tuple[str, ...] | None:
    """Return the names of a tuple's items; None if they have no names."""
    found = [match[1] for match in map(_FIELD.fullmatch, entries) if match]
    if not found:
        return None
    if len(found) != len(entries):
        raise ValueError(
            f"some items of {text!r} in the signature have names and some do not: "
            "name all of them or none"
        )
    for name in found:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ValueError(f"{name!r} in the signature is not the name of a field")
    if len(set(found)) != len(found):
        raise ValueError(f"two items of {text!r} in the signature have the same name")
    return tuple(found)


def _with_hint(kind: str, hint: str, text: str) -> Argument:
    is_integer = kind[0] in "iu" and kind != "u1"
    if hint == "1" and is_integer:
        return Argument("constexpr", 1, 1)
    if hint == "16" and (is_integer or kind.startswith("*")):
        return Argument(kind, "D")
    if hint:
        raise ValueError(
            f"{text!r} in the signature: only :16 (of pointers and integers) and :1 (of integers) "
            "can follow a type"
        )
    return Argument(kind, "" if is_integer or kind.startswith("*") else None)


def _check_element(kind: str, text: str) -> None:
    if kind not in _POINTED:
        raise ValueError(f"{text!r} in the signature: Triton has no element type {kind!r}")


def _split(text: str) -> Iterator[str]:
    depth = 0
    start = 0
    for i, letter in enumerate(text):
        # Commas inside of brackets belong to one entry: a tuple, or a descriptor's block.
        if letter in "([<{":
            depth += 1
        elif letter in ")]>}":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[start:i].strip()
            start = i + 1
        if depth < 0:
            raise ValueError(f"the signature {text!r} closes a bracket that it did not open")
    if depth:
        raise ValueError(f"the signature {text!r} does not close a bracket")
    if text[start:].strip():
        yield text[start:].strip()
