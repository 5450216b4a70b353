"""The properties that an array of any framework reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from culaunch._core import array_info as core_array_info
from culaunch._launch.devices.driver import current_driver


@dataclass(frozen=True)
class ArrayInfo:
    """Where an array is and what it holds.

    Attributes
    ----------
    address : int
        Of its first element.
    shape, strides : tuple[int, ...]
        In elements.
    code, bits : int
        The element type, as DLPack has it.
    device : tuple[int, int]
        DLPack's device type and the ordinal.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    code: int
    bits: int
    device: tuple[int, int]


def array_info(array: Any) -> ArrayInfo:
    """Read an array through the ways that a launch reads it.

    Raises
    ------
    TypeError
        If it is not an array.
    """
    return ArrayInfo(*core_array_info(current_driver(), array))
