"""Copies between an array on a device and any other, and constants into one."""

from __future__ import annotations

from typing import Any

from culaunch._base.values import show, spell
from culaunch._core import DeviceArray as CoreDeviceArray
from culaunch._core import array_info
from culaunch._launch.arrays.host_memory import bytes_of, host_array
from culaunch._launch.devices.stream_handle import stream_or_current
from culaunch._launch.formats.dlpack import DeviceType
from culaunch._launch.formats.numpy_dtypes import unpacked
from culaunch._launch.formats.strides import is_dense
from culaunch._launch.private_members import copy_from, copy_to, driver_of, ordinal_of


def copy_in(array: CoreDeviceArray, source: Any, stream: object) -> None:
    """Copy ``source`` into an array; :meth:`DeviceArray.copy_from` says how."""
    handle = stream_or_current(stream, ordinal_of(array))
    # Between devices the driver copies by addresses. Host memory goes through NumPy, which knows
    # its layout.
    if is_on_device(source):
        address = _checked_address(array, source, "source")
        _copy(array, array.address, address, handle, stream)
        return
    import numpy as np

    host = host_array(driver_of(array), source)
    _check(array, host.shape, host.dtype, "source")
    host = np.ascontiguousarray(host)
    copy_from(array, bytes_of(host), handle, waits=stream is None)


def copy_out(array: CoreDeviceArray, target: Any, stream: object) -> None:
    """Copy an array into ``target``; :meth:`DeviceArray.copy_to` says how."""
    handle = stream_or_current(stream, ordinal_of(array))
    if is_on_device(target):
        address = _checked_address(array, target, "target")
        _copy(array, address, array.address, handle, stream)
        return
    import numpy as np

    if not isinstance(target, np.ndarray) and not hasattr(type(target), "__dlpack_device__"):
        raise TypeError(f"target must be an array of NumPy or a framework (got {spell(target)})")
    host = host_array(driver_of(array), target)
    _check(array, host.shape, host.dtype, "target")
    if not host.flags.c_contiguous or not host.flags.writeable:
        raise ValueError("target must be writable, and contiguous in C order")
    copy_to(array, bytes_of(host), handle, waits=stream is None)


def fill_elements(array: CoreDeviceArray, value: Any, stream: object) -> None:
    """Set every element of an array; :meth:`DeviceArray.fill` says how."""
    import numpy as np

    dtype = _dtype(array)
    if dtype.names is not None:
        raise TypeError(
            f"fill needs an array of numbers (got structures, {dtype}): set each structure with "
            "copy_from(array), or every byte with view('u1').fill(0)"
        )
    element = np.empty(1, dtype)
    # NumPy wraps some values that do not fit, and refuses others, depending on the version. None is
    # changed here.
    if dtype.kind in "iu" and isinstance(value, (int, np.integer)):
        limits = np.iinfo(dtype)
        if not limits.min <= int(value) <= limits.max:
            raise OverflowError(f"value must fit {dtype} (got {spell(value)})")
    elif value is None or (dtype.kind in "iub" and not isinstance(value, (bool, np.bool_))):
        raise TypeError(f"value must be a number that {dtype} can hold (got {spell(value)})")
    try:
        with np.errstate(over="ignore"):
            element[0] = value
        if dtype.kind in "fc" and np.isinf(element[0]) and not np.isinf(value):
            raise OverflowError
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"value must be a number that {dtype} can hold (got {spell(value)})"
        ) from error
    except OverflowError:
        raise OverflowError(f"value must fit {dtype} (got {spell(value)})") from None
    fill_bytes(array, element.tobytes(), stream_or_current(stream, ordinal_of(array)))


def fill_bytes(array: CoreDeviceArray, pattern: bytes, stream: int) -> None:
    """Repeat a pattern, whose number of bytes is a power of two, over an array."""
    # Find the shortest pattern that repeats: eight zero bytes are one zero byte, which every driver
    # sets fastest.
    while len(pattern) > 1 and pattern[: len(pattern) // 2] == pattern[len(pattern) // 2 :]:
        pattern = pattern[: len(pattern) // 2]
    driver, device, size = driver_of(array), ordinal_of(array), len(pattern)
    count = array.nbytes // size
    if count == 0:
        return
    if size <= 4:
        fill = {1: driver.set_8_bits, 2: driver.set_16_bits, 4: driver.set_32_bits}[size]
        fill(device, array.address, int.from_bytes(pattern, "little"), count, stream)
        return
    # The driver's widest pattern has 4 bytes. Wider elements are set word by word, as columns with
    # a pitch of `size` bytes.
    for offset in range(0, size, 4):
        word = int.from_bytes(pattern[offset : offset + 4], "little")
        driver.set_32_bits_apart(device, array.address + offset, size, word, 1, count, stream)


def is_on_device(array: Any) -> bool:
    """Tell whether an array reports memory that is not the host's."""
    if isinstance(array, CoreDeviceArray):
        return True
    ask = getattr(type(array), "__dlpack_device__", None)
    if ask is None:
        return False
    return bool(ask(array)[0] != DeviceType.CPU)


def _copy(array: CoreDeviceArray, target: int, source: int, handle: int, stream: object) -> None:
    driver = driver_of(array)
    if array.nbytes:
        driver.copy(ordinal_of(array), target, source, array.nbytes, handle)
    if stream is None:
        driver.stream_synchronize(ordinal_of(array), handle)


def _checked_address(array: CoreDeviceArray, other: Any, name: str) -> int:
    """Return the address of an array on a device that can be copied to or from this one."""
    driver = driver_of(array)
    address, shape, strides, code, bits, device = array_info(driver, other)
    if device[0] not in driver.device_types:
        raise ValueError(
            f"{name} must be in the memory of the driver in use, {driver.name!r} (got "
            f"{show(other)})"
        )
    kind = _dtype(other) if isinstance(other, CoreDeviceArray) else unpacked(code, bits)
    _check(array, shape, kind, name)
    if not is_dense(shape, strides):
        raise ValueError(f"{name} must be contiguous, in C order (got strides {strides})")
    return address


def _check(array: CoreDeviceArray, shape: tuple[int, ...], dtype: Any, name: str) -> None:
    if shape != array.shape or dtype != _dtype(array):
        raise ValueError(
            f"{name} must have the array's shape {array.shape} and dtype {_dtype(array)} (got "
            f"{shape} and {dtype})"
        )


def _dtype(array: CoreDeviceArray) -> Any:
    return array.dtype  # type: ignore[attr-defined]  # the class in Python has it
