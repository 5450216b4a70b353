"""How a method says which C parameters it has."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypeVar

from culaunch._core import Driver

if TYPE_CHECKING:
    from collections.abc import Callable

_Method = TypeVar("_Method", bound="Callable[..., Any]")


def takes(words: str, result: Any = ctypes.c_int) -> Callable[[_Method], _Method]:
    """Mark a C function with its parameters, in the words of ``Driver.prototypes()``.

    The C function returns a code, or with ``result`` the method's own value of that C type.
    """

    def mark(method: _Method) -> _Method:
        method.__dict__.update(words=tuple(words.split()), result=result)
        return method

    return mark


def words_of(method: Any) -> tuple[str, ...]:
    """Return the parameters of a driver function."""
    words: tuple[str, ...] | None = getattr(method, "words", None)
    return Driver.prototypes()[method.__name__] if words is None else words
