"""Memory for arrays: on a device, shared by device and host, or pinned on the host."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from culaunch._base.optional import optional
from culaunch._core import array_info
from culaunch._launch.arrays.copies import fill_bytes, is_on_device
from culaunch._launch.arrays.device_array import DeviceArray, over
from culaunch._launch.arrays.host_memory import bytes_of, host_array, over_host
from culaunch._launch.devices.driver import current_driver, device_ordinal
from culaunch._launch.devices.stream_handle import stream_or_current
from culaunch._launch.formats.dlpack import DeviceType
from culaunch._launch.formats.numpy_dtypes import checked_dtype, checked_shape, unpacked
from culaunch._launch.private_members import copy_from

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike

_ATTACH_GLOBAL = 1  # CU_MEM_ATTACH_GLOBAL
_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: pinned for every device


def empty(
    shape: int | tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: int | None = None,
    stream: object = None,
    like: Any = None,
) -> DeviceArray:
    """Allocate an uninitialized array on a device: `culaunch.empty` outside of bodies."""
    if like is not None:
        shape, dtype, device = _as_like(like, shape, dtype, device)
    return DeviceArray(shape, "float32" if dtype is None else dtype, device, stream)  # type: ignore[arg-type]


def zeros(
    shape: int | tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: int | None = None,
    stream: object = None,
    like: Any = None,
) -> DeviceArray:
    """Allocate an array on a device, and set it to zero in a stream.

    By default this is the current stream, as :meth:`DeviceArray.numpy` says.
    """
    array = empty(shape, dtype, device=device, stream=stream, like=like)
    fill_bytes(array, b"\0", stream_or_current(stream, array.device))
    return array


def to_device(array: ArrayLike, device: int | None = None, stream: object = None) -> DeviceArray:
    """Copy a NumPy array to a device, and wait for the copy.

    Parameters
    ----------
    array : array_like
        Anything that ``numpy.asarray`` accepts. It is copied in C order.
    device : int, optional
        The device's ordinal; the current one by default.
    stream : int or object, optional
        The stream to copy in. The default is the current stream, as in :meth:`DeviceArray.numpy`.

    Returns
    -------
    DeviceArray
        The copy.

    Raises
    ------
    TypeError, ValueError
        If kernels cannot use the element type, or it has the other byte order.

    Examples
    --------
    >>> a = cl.to_device(np.arange(4))
    >>> a.numpy()
    array([0, 1, 2, 3])
    """
    np = optional("numpy", "to_device", "numpy")
    source = np.ascontiguousarray(array).reshape(np.shape(array))
    # Refuse an invalid stream before any allocation.
    if stream is not None:
        stream = stream_or_current(stream, 0)
    result = DeviceArray(source.shape, source.dtype, device)
    copy_from(result, bytes_of(source), stream_or_current(stream, result.device), waits=True)
    return result


def managed(
    shape: int | tuple[int, ...], dtype: DTypeLike = "float32", *, device: int | None = None
) -> DeviceArray:
    """Allocate an array that both kernels and the host can access (CUDA's managed memory).

    Parameters
    ----------
    shape, dtype, device
        As in :func:`empty`. The memory of an emulated device is managed already.

    Returns
    -------
    DeviceArray
        Uninitialized. :meth:`DeviceArray.on_host` returns the same memory as a NumPy array.

    Raises
    ------
    TypeError, ValueError, OverflowError, DriverError
        As in :func:`empty`.

    Examples
    --------
    >>> a = cl.managed(4, "int32")
    >>> a.on_host()[:] = 5
    >>> a.numpy()
    array([5, 5, 5, 5], dtype=int32)
    """
    driver = current_driver()
    if DeviceType.CUDA_MANAGED not in driver.device_types:
        return DeviceArray(shape, dtype, device)
    kind, sizes, ordinal = (
        checked_dtype(dtype),
        checked_shape(shape),
        device_ordinal(driver, device),
    )
    nbytes = _checked_size(sizes, kind)
    address, keeper = 0, None
    if nbytes:
        address = driver.managed_allocate(ordinal, nbytes, _ATTACH_GLOBAL)
        keeper = _Allocation(driver.free, ordinal, address)
    return over(driver, (DeviceType.CUDA_MANAGED, ordinal), address, sizes, kind, keeper=keeper)


def pinned(shape: int | tuple[int, ...], dtype: DTypeLike = "float32") -> np.ndarray[Any, Any]:
    """Allocate a NumPy array in page-locked host memory.

    Copies to and from a device with ``stream=`` overlap with the program
    (:meth:`DeviceArray.copy_from`), and all copies are faster. The memory is freed together with
    the last array that uses it.

    Parameters
    ----------
    shape, dtype
        As in :func:`empty`.

    Returns
    -------
    numpy.ndarray
        Uninitialized.

    Raises
    ------
    TypeError, ValueError, OverflowError, DriverError
        As in :func:`empty`.

    Examples
    --------
    >>> host = cl.pinned(256)
    >>> host[:] = 1
    >>> x.copy_from(host, stream=cl.Stream())
    """
    np = optional("numpy", "pinned", "numpy")
    driver = current_driver()
    kind, sizes = checked_dtype(dtype), checked_shape(shape)
    nbytes = _checked_size(sizes, kind)
    if nbytes == 0:
        return np.empty(sizes, kind)  # type: ignore[no-any-return]
    ordinal = driver.current_device()
    address = driver.host_allocate(ordinal, nbytes, _PORTABLE)
    return over_host(address, sizes, kind, _Allocation(driver.host_free, ordinal, address))


def allocate(
    shape: tuple[int, ...], code: int, bits: int, lanes: int, device_type: int, device: int
) -> DeviceArray:
    """Allocate an array that a library requests through DLPack. The extension calls this."""
    made = DeviceArray(shape, unpacked(code, bits, lanes), device)
    own = made.__dlpack_device__()
    if own != (device_type, device):
        raise ValueError(
            f"culaunch allocates memory of DLPack's device type {own[0]} with the driver in use "
            f"(got {device_type})"
        )
    return made


def adopt(tensor: object, code: int, bits: int, lanes: int) -> DeviceArray:
    """Return an array over a library's tensor, and keep the tensor alive.

    The extension calls this.
    """
    dtype = unpacked(code, bits, lanes)
    array = DeviceArray._adopt(current_driver(), tensor)  # noqa: SLF001 - the extension's constructor
    array.dtype = dtype
    return array


class _Allocation:
    """Memory that is freed with this object."""

    def __init__(self, free: Callable[[int, int], None], ordinal: int, address: int) -> None:
        self._free = free
        self._where = ordinal, address

    def __del__(self) -> None:
        self._free(*self._where)


def _as_like(like: Any, shape: Any, dtype: Any, device: int | None) -> tuple[Any, Any, int | None]:
    """Return the given values; take missing ones from another array."""
    if is_on_device(like):
        _, sizes, _, code, bits, place = array_info(current_driver(), like)
        if dtype is None:
            kind = like.dtype if isinstance(like, DeviceArray) else unpacked(code, bits)
        else:
            kind = dtype
        device = place[1] if device is None else device
    else:
        host = host_array(current_driver(), like)
        sizes, kind = host.shape, host.dtype if dtype is None else dtype
    return sizes if shape is None else shape, kind, device


def _checked_size(sizes: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    nbytes = math.prod(sizes) * dtype.itemsize
    if min(sizes, default=0) < 0 or nbytes >= 1 << 60:
        raise ValueError(
            f"shape must have no negative size, and less than 2^60 bytes (got {sizes})"
        )
    return nbytes
