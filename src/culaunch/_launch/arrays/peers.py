"""Memory of another device as an argument of a kernel on this one."""

from __future__ import annotations

from typing import Any

from culaunch._errors import DriverError
from culaunch._launch.arrays.array import array_info
from culaunch._launch.arrays.device_array import DeviceArray, over
from culaunch._launch.devices.driver import current_driver, device_ordinal
from culaunch._launch.formats.numpy_dtypes import unpacked
from culaunch._launch.formats.strides import is_dense

_UNSUPPORTED = 217  # CUDA_ERROR_PEER_ACCESS_UNSUPPORTED


def peer_array(array: Any, device: int | None = None) -> DeviceArray:
    """Return an array on another device as one that kernels on this device accept.

    All arrays of a launch must belong to one device, and the launch goes there. The result counts
    as an array of this device, although its memory is on another. Kernels access it through the
    connection between the two devices. The call enables this access in the primary context if
    necessary.

    Memory that torch's symmetric memory has mapped belongs to the device that its tensor reports;
    use this function for tensors that report the other device. Memory that another process has
    shared (CUDA's IPC, torch's multiprocessing) is visible only to the device that was current
    when this process opened it. A kernel on any other device ends with an illegal address, even
    with access enabled. Make the device of your kernels current before you open the handle.

    Parameters
    ----------
    array : array
        Contiguous, on any device. It stays alive with the result. You must order work that writes
        to it: no stream of this device waits for that work.
    device : int, optional
        The device whose kernels use the array; the current one by default.

    Returns
    -------
    DeviceArray
        An array over the same memory.

    Raises
    ------
    TypeError, ValueError
        If it is not an array, or not contiguous.
    DriverError
        If the device cannot access the memory of the other.

    Examples
    --------
    >>> there = cl.to_device(np.ones(256, "float32"), device=cl.driver.device_count() - 1)
    >>> kernel[1, 256](y, cl.arguments.peer_array(there, 0), 2.0, 256)
    """
    driver = current_driver()
    ordinal = device_ordinal(driver, device)
    info = array_info(array)
    owner = info.device[1]
    if not is_dense(info.shape, info.strides):
        raise ValueError(
            f"array must be contiguous (got strides {info.strides} of shape {info.shape}): make "
            "it contiguous on its own device"
        )
    if owner != ordinal and not driver.reach(ordinal, owner):
        raise DriverError(
            f"device {ordinal} cannot reach the memory of device {owner}: there is no connection "
            "between them (nvidia-smi topo -m): copy the array",
            _UNSUPPORTED,
            "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
        )
    dtype = unpacked(info.code, info.bits)
    device_type = info.device[0]
    return over(driver, (device_type, ordinal), info.address, info.shape, dtype, keeper=array)
