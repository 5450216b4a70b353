"""Arrays on a device for whoever has only NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from culaunch._base.optional import optional
from culaunch._base.values import fits, spell
from culaunch._core import DeviceArray as CoreDeviceArray
from culaunch._launch.driver import current_driver, device_ordinal
from culaunch._launch.streams import stream_handle

_MOST_DIMS = 64  # NumPy's limit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # NumPy's kinds, DLPack's type codes
_BFLOAT = 4


class DeviceArray(CoreDeviceArray):
    """A contiguous array in the memory of a device, made by :func:`to_device` or :func:`empty`.

    It is minimal on purpose: pass it to kernels, hand it to a framework (DLPack,
    ``__cuda_array_interface__``), or copy it back with :meth:`numpy`.

    Attributes
    ----------
    shape : tuple[int, ...]
    dtype : numpy.dtype
    address : int
        The address of its first element.
    nbytes : int
        Its size in bytes.
    device : int
        The ordinal of its device.
    """

    dtype: np.dtype[Any]

    def __new__(
        cls, shape: int | tuple[int, ...], dtype: DTypeLike, device: int | None
    ) -> DeviceArray:
        """Allocate one, not initialised; :func:`empty` is the way to make one."""
        np = optional("numpy", "a DeviceArray's dtype", "numpy")
        kind = _checked_dtype(np, dtype)
        sizes = _checked_shape(shape)
        code = _BFLOAT if kind.name == "bfloat16" else _CODES.get(kind.kind)
        if code is None:
            raise TypeError(f"dtype must be a bool, an integer, a float or complex (got {kind})")
        if not kind.isnative:
            raise ValueError(
                f"dtype {kind.str!r} has its bytes in the other order, which kernels do not read: "
                'convert the array, as with array.astype(array.dtype.newbyteorder("="))'
            )
        driver = current_driver()
        ordinal = device_ordinal(driver, device)
        self = super().__new__(cls, driver, ordinal, sizes, code, 8 * kind.itemsize)
        self.dtype = kind
        return self

    @property
    def device(self) -> int:
        """The ordinal of its device."""
        return self._dlpack_device[1]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def numpy(self, stream: object = None) -> np.ndarray[Any, Any]:
        """Copy it to a new NumPy array, after all that is in the stream has run.

        Parameters
        ----------
        stream : int or object, optional
            The stream that kernels wrote it in; the default stream if it is not given.

        Raises
        ------
        DriverError
            If the copy fails, or a kernel before it in the stream did.
        """
        import numpy as np

        result = np.empty(self.shape, self.dtype)
        self._copy_to(_bytes(result), 0 if stream is None else stream_handle(stream))
        return result

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array on a device cannot become a NumPy array without a copy")
        return self.numpy().astype(dtype or self.dtype, copy=False)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Export it without a copy (array API standard, ``__dlpack__``).

        Nothing is ordered: kernels that write it run in the stream that the caller chose.
        """
        if copy or dl_device not in (None, self._dlpack_device, list(self._dlpack_device)):
            raise BufferError("a DeviceArray is exported as it is: no copy, no other device")
        if max_version is not None and [type(one) for one in _items(max_version)] != [int, int]:
            raise TypeError(f"max_version must be a tuple of two ints (got {spell(max_version)})")
        return self._dlpack(max_version is not None and max_version[0] >= 1)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._dlpack_device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._dlpack_device[0] != 2:  # kDLCUDA
            raise AttributeError("the array is in the memory of an emulated device")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "stream": None,
            "version": 3,
        }

    def __repr__(self) -> str:
        return f"<culaunch.DeviceArray {self.shape} {self.dtype} on device {self.device}>"


def empty(shape: int | tuple[int, ...], dtype: DTypeLike, device: int | None = None) -> DeviceArray:
    """Allocate an array on a device, not initialised.

    Parameters
    ----------
    shape : int or tuple[int, ...]
        In elements.
    dtype : numpy.dtype or what makes one
        A bool, an integer, a float (``ml_dtypes.bfloat16`` too) or complex.
    device : int, optional
        The device's ordinal; the current one by default.

    Raises
    ------
    TypeError, ValueError, OverflowError
        If the shape, the dtype or the device is none. A dtype must have the machine's byte order.
    DriverError
        If there is not that much memory.
    """
    return DeviceArray(shape, dtype, device)


def _items(given: object) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (tuple, list)) else ()


def _checked_shape(shape: Any) -> tuple[int, ...]:
    if hasattr(type(shape), "__index__"):
        shape = (shape,)
    if not isinstance(shape, Iterable):
        raise TypeError(f"shape must be an int or a tuple of ints (got {spell(shape)})")
    sizes = tuple(islice(shape, _MOST_DIMS + 1))
    if len(sizes) > _MOST_DIMS:
        raise ValueError(f"shape must have at most {_MOST_DIMS} dimensions")
    return tuple(fits(size, "shape", 64) for size in sizes)


def _checked_dtype(np: Any, dtype: Any) -> np.dtype[Any]:
    """Return what NumPy makes of a dtype; of what is none it says only what it is not."""
    try:
        return np.dtype(dtype)  # type: ignore[no-any-return]
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"dtype must be what numpy.dtype takes (got {spell(dtype)})") from error


def allocate(
    shape: tuple[int, ...], code: int, bits: int, lanes: int, device_type: int, device: int
) -> DeviceArray:
    """Allocate what a library asks for in DLPack's words. The extension calls it."""
    made = DeviceArray(shape, _dtype(code, bits, lanes), device)
    if made._dlpack_device != (device_type, device):  # noqa: SLF001
        raise ValueError(
            f"culaunch allocates memory of DLPack's device type {made._dlpack_device[0]} "  # noqa: SLF001
            f"with the driver in use (asked for {device_type})"
        )
    return made


def adopt(tensor: object, code: int, bits: int, lanes: int) -> DeviceArray:
    """Return an array over a library's tensor, which it keeps. The extension calls it."""
    dtype = _dtype(code, bits, lanes)
    array = DeviceArray._adopt(current_driver(), tensor)  # noqa: SLF001
    array.dtype = dtype
    return array


def _dtype(code: int, bits: int, lanes: int) -> np.dtype[Any]:
    numpy = optional("numpy", "a DeviceArray's dtype", "numpy")
    kind = {number: letter for letter, number in _CODES.items()}.get(code)
    dtype: np.dtype[Any]
    if lanes == 1 and (code, bits) == (_BFLOAT, 16):
        dtype = numpy.dtype(optional("ml_dtypes", "a bfloat16 output", "ml_dtypes").bfloat16)
        return dtype
    if lanes != 1 or bits % 8 or kind is None:
        raise ValueError(
            f"culaunch has no arrays of DLPack's type ({code}, {bits} bits, {lanes} lanes): pass "
            "the output to a function that takes it, or pass another framework's arrays"
        )
    dtype = numpy.dtype("?" if kind == "b" else f"{kind}{bits // 8}")
    return dtype


def to_device(array: ArrayLike, device: int | None = None, stream: object = None) -> DeviceArray:
    """Copy a NumPy array to a device, and wait for the copy.

    Parameters
    ----------
    array : array_like
        Anything that ``numpy.asarray`` takes; copied in C order.
    device : int, optional
        The device's ordinal; the current one by default.
    stream : int or object, optional
        The stream to copy in; the default stream if it is not given.

    Raises
    ------
    TypeError, ValueError
        If its elements are none that kernels take, or in the other byte order.
    """
    np = optional("numpy", "to_device", "numpy")
    source = np.ascontiguousarray(array).reshape(np.shape(array))
    handle = 0 if stream is None else stream_handle(stream)
    result = DeviceArray(source.shape, source.dtype, device)
    result._copy_from(_bytes(source), handle)  # noqa: SLF001
    return result


def _bytes(array: np.ndarray[Any, Any]) -> memoryview:
    # ml_dtypes' types export no buffer; bytes always do.
    return array.reshape(-1).view("u1").data
