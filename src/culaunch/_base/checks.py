"""Argument checks that several public functions share."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

from culaunch._base.values import spell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Choice = TypeVar("Choice")


def checked_list(argument: str, value: object, holds: str) -> Sequence[Any]:
    """Return an argument that takes several values as a tuple.

    Raise TypeError if it is not an iterable, or is a single str.
    """
    if isinstance(value, (str, bytes, os.PathLike)) or not isinstance(value, Iterable):
        raise TypeError(f"{argument} must be a list of {holds} (got {spell(value)})")
    return tuple(value)


def checked_flag(argument: str, value: object) -> bool:
    """Return a bool; text such as ``"no"``, which is true in Python, is a TypeError."""
    if not isinstance(value, bool):
        raise TypeError(f"{argument} must be True or False (got {spell(value)})")
    return value


def checked_choice(argument: str, value: object, choices: Mapping[str, Choice]) -> Choice:
    """Return the value for one of several words.

    Raises
    ------
    TypeError
        If it is not a str.
    ValueError
        If it is another word; the message lists the words.
    """
    if isinstance(value, str) and value in choices:
        return choices[value]
    kind = ValueError if isinstance(value, str) else TypeError
    raise kind(f"{argument} must be one of {', '.join(map(repr, choices))} (got {spell(value)})")


def checked_text(argument: str, value: object, what: str = "a str") -> str:
    """Return text that a compiler, a driver or a file can have.

    Raises
    ------
    TypeError
        If it is not a str.
    ValueError
        If it has a null character, or lone surrogates, which have no bytes.
    """
    if not isinstance(value, str):
        raise TypeError(f"{argument} must be {what} (got {spell(value)})")
    if not is_text(value):
        raise ValueError(
            f"{argument} must have no null character or lone surrogate (got {value!r})"
        )
    return value


def checked_number(argument: str, value: object) -> float:
    """Return a real number as a float.

    Raises
    ------
    TypeError
        If it is not a real number.
    OverflowError
        If it is too large for a float.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{argument} must be a number (got {spell(value)})")
    try:
        return float(value)
    except OverflowError:
        raise OverflowError(f"{argument} must fit a float (got {spell(value)})") from None


def checked_path(argument: str, value: object) -> str:
    """Return a path as text.

    Raises
    ------
    TypeError
        If it is neither a str nor an os.PathLike.
    ValueError
        If no file can have that name.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{argument} must be a path (got {spell(value)})")
    text = os.fsdecode(value)
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(f"{argument} must be a valid path (got {text!r})") from None
    if not text or "\0" in text:
        raise ValueError(f"{argument} must be a valid path (got {text!r})")
    return text


def is_text(value: str) -> bool:
    """Tell whether a str is text: one with lone surrogates has no bytes to give a compiler."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
