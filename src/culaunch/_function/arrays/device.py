"""The device of a call, as a body sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._launch.devices.device import attribute_number

if TYPE_CHECKING:
    from collections.abc import Callable


class BodyDevice:
    """The device of a call's arrays, with ``ordinal`` and ``attribute(name)``."""

    __slots__ = ("_get", "_ordinal")

    def __init__(self, ordinal: Callable[[], Any], get: Callable[[int, str], Any]) -> None:
        self._ordinal = ordinal
        self._get = get

    @property
    def ordinal(self) -> Any:
        """Which one it is, from 0."""
        return self._ordinal()

    def attribute(self, name: str) -> Any:
        """Return an attribute by its name in the driver API, as ``Device.attribute`` does."""
        return self._get(int(attribute_number(name)), name)

    def __repr__(self) -> str:
        return "<the device of the call>"
