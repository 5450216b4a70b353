"""Memory of another device as an argument of a kernel on this one."""

from __future__ import annotations

from typing import Any

from culaunch._errors import DriverError
from culaunch._launch.array import array_info
from culaunch._launch.device_array import DeviceArray, over
from culaunch._launch.driver import current_driver, device_ordinal
from culaunch._launch.numpy_dtypes import unpacked
from culaunch._launch.strides import is_dense

_UNSUPPORTED = 217  # CUDA_ERROR_PEER_ACCESS_UNSUPPORTED


def peer(array: Any, device: int | None = None) -> DeviceArray:
    """Return an array of another device as one that kernels on this device take.

    All arrays of a launch belong to one device, and the launch goes there. This says that an array
    counts as this device's although its memory is another's, which kernels reach through the
    connection between the two. The access is turned on if it is not, in the primary context.
    Memory that torch's symmetric memory has mapped counts as what its tensor says; this is for
    tensors that say the other device. Memory that another process has shared (CUDA's IPC, torch's
    multiprocessing) is seen by the device that was current when this process opened it, and by no
    other, whatever access is turned on: a kernel of another one ends in an illegal address. Open
    its handle with the device current whose kernels shall take it.

    Parameters
    ----------
    array : array
        Contiguous, on any device. It stays alive with the result, and work that writes to it is the
        caller's to order: no stream of this device waits for it.
    device : int, optional
        The device whose kernels shall take it; the current one by default.

    Returns
    -------
    DeviceArray
        Over the same memory.

    Raises
    ------
    TypeError, ValueError
        If it is no array, or not contiguous.
    DriverError
        If the device cannot reach the memory of the other.
    """
    driver = current_driver()
    ordinal = device_ordinal(driver, device)
    info = array_info(array)
    owner = info.device[1]
    if not is_dense(info.shape, info.strides):
        raise ValueError(
            f"array must be contiguous (got strides {info.strides} of shape {info.shape}): make it "
            "so on its own device"
        )
    if owner != ordinal and not driver.reach(ordinal, owner):
        raise DriverError(
            f"device {ordinal} cannot reach the memory of device {owner}: there is no connection "
            "between them (nvidia-smi topo -m); copy the array",
            _UNSUPPORTED,
            "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
        )
    dtype = unpacked(info.code, info.bits)
    device_type = info.device[0]
    return over(driver, (device_type, ordinal), info.address, info.shape, dtype, keeper=array)
