"""The properties that an array of any framework reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from culaunch._core import array_info as core_array_info
from culaunch._launch.devices.driver import current_driver


@dataclass(frozen=True)
class ArrayInfo:
    """The place and the layout of an array."""

    address: int
    """The address of its first element."""
    # In elements.
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    # DLPack's numbers of the element type.
    code: int
    bits: int
    device: tuple[int, int]
    """DLPack's device type and the ordinal."""


def array_info(array: Any) -> ArrayInfo:
    """Read an array in the same way as a launch; raise TypeError if it is not an array."""
    return ArrayInfo(*core_array_info(current_driver(), array))
