"""The checks of an emulated device, and how it runs."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OPTION_TYPES", "Observer", "Options", "chosen_engine", "options_from_text"]

_ENGINES = ("numpy", "compiled", "auto")

# The options that a user can change by name.
OPTION_TYPES = {
    "check_races": bool,
    "check_uninitialized": bool,
    "check_views": bool,
    "lanes": int,
    "time_limit": float,
}
_ON, _OFF = ("1", "true", "on", "yes"), ("0", "false", "off", "no")


def _to_stdout(text: str) -> None:
    try:
        print(text, end="")  # noqa: T201 - without a standard output, nothing is written
    except (OSError, ValueError) as error:  # it is full, closed, or lacks these characters
        # As on a GPU, a launch never fails because of its output.
        warnings.warn(f"output of kernels is lost: {error}", RuntimeWarning, stacklevel=2)


class Observer(Protocol):
    """Sees what the threads of launches execute."""

    def begin(self, block: Any, group: Any) -> list[Any]:
        """Note that a group begins a block of the code; return the operations to run."""
        raise NotImplementedError

    def end(self, block: Any, group: Any) -> None:
        """Note that a group has run the operations of a block, and leaves it next."""
        raise NotImplementedError

    def access(self, group: Any, space: str, address: Any, size: int, verb: str) -> None:
        """Note that the threads of a group access bytes at these addresses of a memory."""
        raise NotImplementedError


@dataclass(frozen=True)
class Options:
    """Settings of an emulated device.

    Parameters
    ----------
    check_uninitialized : bool
        Report uses of shared memory that the block has not written.
    check_races : bool
        Report accesses of two threads to the same shared memory, one of them a write, that
        nothing orders.
    check_views : bool
        Report accesses beyond what the array of an argument shows, if it is a view of another.
    lanes : int
        About how many threads to run at once.
    time_limit : float, optional
        Seconds after which a launch is given up as one that does not end.
    write : callable
        Receives what kernels print.
    observer : Observer, optional
        Sees what threads execute.
    """

    check_uninitialized: bool = True
    check_races: bool = False
    check_views: bool = False
    lanes: int = 1 << 15
    time_limit: float | None = None
    write: Callable[[str], None] = _to_stdout
    observer: Observer | None = None


def options_from_text(text: str) -> Options:
    """Read options in the form of ``CULAUNCH_EMULATOR_OPTIONS``: ``"check_races,time_limit=10"``.

    Raises
    ------
    ValueError
        If an option is unknown, or its value is invalid.
    """
    # Nothing is ignored: a misspelt check that stays off would be believed to have passed.
    found: dict[str, Any] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in word.partition("="))
        if name not in OPTION_TYPES:
            raise ValueError(
                f"CULAUNCH_EMULATOR_OPTIONS has the unknown option {name!r}: the options are "
                f"{', '.join(OPTION_TYPES)}"
            )
        try:
            found[name] = _value(OPTION_TYPES[name], value)
        except ValueError:
            kind = OPTION_TYPES[name].__name__
            raise ValueError(
                f"CULAUNCH_EMULATOR_OPTIONS: {name} must be a {kind}, as in "
                f"'check_races=1,time_limit=10' (got {value!r})"
            ) from None
    return Options(**found)


def chosen_engine() -> str:
    """Return the engine that ``CULAUNCH_EMULATOR_ENGINE`` names.

    Raises
    ------
    ValueError
        If there is no such engine.
    """
    name = os.environ.get("CULAUNCH_EMULATOR_ENGINE") or "auto"
    if name not in _ENGINES:
        raise ValueError(
            f"CULAUNCH_EMULATOR_ENGINE must be one of {', '.join(_ENGINES)} (got {name!r})"
        )
    return name


def _value(kind: type, text: str) -> Any:
    if kind is not bool:
        number = kind(text)
        if not number > 0:
            raise ValueError(text)
        return number
    if text.lower() in ("", *_ON):
        return True
    if text.lower() in _OFF:
        return False
    raise ValueError(text)
