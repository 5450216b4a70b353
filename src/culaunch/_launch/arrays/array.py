"""The properties that an array of any framework reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from culaunch._core import array_info as core_array_info
from culaunch._launch.devices.driver import current_driver


@dataclass(frozen=True)
class ArrayInfo:
    """The place and the layout of an array.

    Attributes
    ----------
    address : int
        Of its first element.
    shape, strides : tuple[int, ...]
        In elements.
    code, bits : int
        DLPack's numbers of the element type.
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
    """Read an array in the same way as a launch.

    Raises
    ------
    TypeError
        If it is not an array.
    """
    return ArrayInfo(*core_array_info(current_driver(), array))
