"""How a method says which C parameters it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from culaunch._core import Driver

if TYPE_CHECKING:
    from collections.abc import Callable

_Method = TypeVar("_Method", bound="Callable[..., None]")


def takes(words: str) -> Callable[[_Method], _Method]:
    """Mark a driver function with its parameters, in the words of ``Driver.prototypes()``."""

    def mark(method: _Method) -> _Method:
        method.__dict__["words"] = tuple(words.split())
        return method

    return mark


def words_of(method: Any) -> tuple[str, ...]:
    """Return the parameters of a driver function."""
    words: tuple[str, ...] | None = getattr(method, "words", None)
    return Driver.prototypes()[method.__name__] if words is None else words
