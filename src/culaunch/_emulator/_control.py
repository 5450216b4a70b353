"""The emulated drivers of this process, and what a test may do to them behind CUDA's back."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from culaunch._emulator._options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._emulator._driver import EmulatedDriver

__all__ = ["options_from_text", "register", "reset", "with_options"]

# All that were made: C code holds their tables for the life of the process.
_drivers: list[EmulatedDriver] = []

_ON, _OFF = ("1", "true", "on", "yes"), ("0", "false", "off", "no")
_NAMES = {"check_races": bool, "check_uninitialized": bool, "lanes": int, "time_limit": float}


def register(driver: EmulatedDriver) -> None:
    """Note a driver that was made."""
    _drivers.append(driver)


def reset() -> None:
    """Make faulted devices good again; memory, modules and kernels stay as they are."""
    for driver in _drivers:
        driver.reset()


@contextlib.contextmanager
def with_options(**changes: Any) -> Iterator[None]:
    """Change options of every emulated device, until the block ends.

    Raises
    ------
    TypeError
        If there is no such option.
    """
    if unknown := sorted(set(changes) - set(_NAMES)):
        raise TypeError(
            f"the emulator has no option {', '.join(unknown)}: it has {', '.join(_NAMES)}"
        )
    before = [(driver.device, driver.device.options) for driver in _drivers]
    for device, options in before:
        device.options = dataclasses.replace(options, **changes)
    try:
        yield
    finally:
        for device, options in before:
            device.options = options


def options_from_text(text: str) -> Options:
    """Read options as ``CULAUNCH_EMULATOR_OPTIONS`` has them: ``"check_races,time_limit=10"``.

    Raises
    ------
    ValueError
        If an option is unknown, or its value is none.
    """
    found: dict[str, Any] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in word.partition("="))
        if name not in _NAMES:
            raise ValueError(
                f"CULAUNCH_EMULATOR_OPTIONS names {name!r}: the options are {', '.join(_NAMES)}"
            )
        try:
            found[name] = _value(_NAMES[name], value)
        except ValueError:
            kind = _NAMES[name].__name__
            raise ValueError(
                f"CULAUNCH_EMULATOR_OPTIONS: {name} must be a {kind}, as in "
                f"'check_races=1,time_limit=10' (got {value!r})"
            ) from None
    return Options(**found)


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
