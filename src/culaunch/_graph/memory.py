"""Copies and fills as nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._core import DeviceArray as CoreDeviceArray
from culaunch._core import array_info, take_copy
from culaunch._launch.arrays.copies import fill_elements, is_on_device
from culaunch._launch.formats.dlpack import DeviceType, memory_name
from culaunch._launch.formats.strides import is_dense

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._core import Driver


def copy_between(driver: Driver) -> Callable[[Any, Any], None]:
    """Return a function that adds a copy of one array to another."""

    def copy(target: Any, source: Any) -> None:
        to, size, device = _place(driver, target, "target")
        origin, count, other = _place(driver, source, "source")
        if size != count:
            raise ValueError(
                f"target and source must have the same number of bytes (got {size} and {count})"
            )
        ordinal = other if device is None else device
        if ordinal is None:
            raise ValueError("target or source must be on a device (got two arrays in host memory)")
        take_copy(driver, ordinal, to, origin, size)

    return copy


def fill_array(array: Any, value: Any) -> None:
    """Add that each element of an array is set."""
    if not isinstance(array, CoreDeviceArray):
        raise TypeError(f"array must be a culaunch.DeviceArray (got {spell(array)})")
    fill_elements(array, value, None)


def _place(driver: Driver, array: Any, name: str) -> tuple[tuple[int, bool], int, int | None]:
    """Return the address and whether it is the host's, the bytes, and the device."""
    address, shape, strides, _, bits, device = array_info(driver, array)
    if not is_dense(shape, strides):
        raise ValueError(f"{name} must be contiguous, in C order (got strides {strides})")
    size = bits // 8
    for extent in shape:
        size *= extent
    if is_on_device(array):
        return (address, False), size, device[1]
    if device[0] != DeviceType.CPU:
        raise ValueError(
            f"{name} must be in host memory or on a device of the driver in use (got "
            f"{memory_name(device[0])})"
        )
    return (address, True), size, None
