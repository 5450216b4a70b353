"""The private members of a dispatcher for this package.

Its public names are those of Triton's object.
"""

# ruff: noqa: SLF001 - every name of a dispatcher's own begins with an underscore

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culaunch._core import Driver, TritonDispatcher


def names_of(dispatcher: TritonDispatcher) -> tuple[str, ...]:
    """Return the names of the kernel's parameters."""
    return dispatcher._parameter_names


def driver_of(dispatcher: TritonDispatcher) -> Driver:
    """Return the driver of a dispatcher, which has been called or prepared."""
    assert dispatcher._driver is not None
    return dispatcher._driver


def call(dispatcher: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a dispatcher, like ``dispatcher[grid](*args, **kwargs)``."""
    return dispatcher._call(grid, args, kwargs)
