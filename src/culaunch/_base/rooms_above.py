"""The rooms that a room below them opens on demand; the root of the package connects them.

An opener imports its room as late as this: frameworks and the emulator are loaded only if needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_openers: dict[str, Callable[[], Any]] = {}


def connect(**openers: Callable[[], Any]) -> None:
    """Set the functions that import rooms; only ``culaunch/__init__.py`` calls this."""
    _openers.update(openers)


def open_room(name: str) -> Any:
    """Return the module of a room: ``emulator``, ``jax`` or ``torch``."""
    return _openers[name]()
