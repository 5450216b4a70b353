"""Arrays on a device for programs that use only NumPy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from culaunch._base.other_words import with_other_words
from culaunch._base.values import counted, fits, spell
from culaunch._core import DeviceArray as CoreDeviceArray
from culaunch._launch.arrays.copies import copy_in, copy_out, fill_elements
from culaunch._launch.arrays.host_memory import bytes_of, over_host
from culaunch._launch.arrays.no_arithmetic import without_arithmetic
from culaunch._launch.devices.driver import current_driver, device_ordinal
from culaunch._launch.devices.stream_handle import stream_or_current
from culaunch._launch.formats.dlpack import DeviceType
from culaunch._launch.formats.numpy_dtypes import checked_dtype, checked_shape, filled_in, packed

if TYPE_CHECKING:
    # Not imported at the top, because a program that launches on a framework's arrays does not need
    # it.
    import numpy as np
    from numpy.typing import DTypeLike


@without_arithmetic
@with_other_words
class DeviceArray(CoreDeviceArray):
    """A contiguous array in the memory of a device.

    :func:`empty`, :func:`zeros`, :func:`to_device` and :func:`managed` make one. It is minimal on
    purpose: pass it to kernels, hand it to a framework (DLPack, ``__cuda_array_interface__``),
    copy to and from it, or take a part of it. Parts share its memory and keep it alive.

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

    Examples
    --------
    >>> a = cl.zeros((2, 3), "int32")
    >>> a.fill(7)
    >>> a[1].numpy()
    array([7, 7, 7], dtype=int32)
    """

    dtype: np.dtype[Any]

    def __new__(
        cls,
        shape: int | tuple[int, ...],
        dtype: DTypeLike,
        device: int | None,
        stream: object = None,
    ) -> DeviceArray:
        """Allocate an uninitialized array; :func:`empty` is the public way to make one."""
        kind = checked_dtype(dtype)
        sizes = checked_shape(shape)
        driver = current_driver()
        ordinal = device_ordinal(driver, device)
        handle = None if stream is None else stream_or_current(stream, ordinal)
        self = super().__new__(cls, driver, ordinal, sizes, *packed(kind), handle)
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

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() needs an array with at least 1 dimension (got 0 dimensions)")
        return self.shape[0]

    def __getitem__(self, index: int | slice) -> DeviceArray:
        """Return a part along the first axis, in the same memory: ``array[i]``, ``array[a:b]``.

        Raises
        ------
        TypeError
            If the index is neither an int nor a slice.
        IndexError
            If there is no such row.
        ValueError
            If a slice has a step: the rows would not be contiguous.
        """
        count = len(self)
        if isinstance(index, slice):
            start, stop, step = index.indices(count)
            if step != 1:
                raise ValueError(
                    "a slice of a DeviceArray must have no step, because the result must be "
                    f"contiguous (got step {step})"
                )
            shape: tuple[int, ...] = (max(stop - start, 0), *self.shape[1:])
        else:
            if not hasattr(type(index), "__index__"):
                raise TypeError(
                    "the index of a DeviceArray must be an int or a slice along its first axis "
                    f"(got {spell(index)}): a framework's array over it, such as "
                    "torch.from_dlpack(array), supports every index"
                )
            start = fits(index, "index", 64)
            if not -count <= start < count:
                raise IndexError(f"index {start} is out of range for {counted(count, 'row')}")
            start %= count
            shape = self.shape[1:]
        # In C order, a part along the first axis is contiguous: an address and a shape.
        row = math.prod(self.shape[1:]) * self.dtype.itemsize
        return self._part(start * row, shape, self.dtype)

    def view(
        self, dtype: DTypeLike | None = None, shape: int | tuple[int, ...] | None = None
    ) -> DeviceArray:
        """Return the same memory as elements of another type, or in another shape.

        Parameters
        ----------
        dtype : numpy.dtype or dtype-like, optional
            The array's own dtype by default.
        shape : int or tuple[int, ...], optional
            In elements; one -1 is computed from the other dimensions. The default is the array's
            own shape if the element size stays the same, otherwise one dimension.

        Returns
        -------
        DeviceArray
            An array over the same memory.

        Raises
        ------
        ValueError
            If the shape has a different number of bytes than the array.
        """
        kind = self.dtype if dtype is None else checked_dtype(dtype)
        if shape is None and kind.itemsize == self.dtype.itemsize:
            shape = self.shape
        return self._part(0, filled_in(shape, self.nbytes, kind), kind)

    def numpy(self, stream: object = None) -> np.ndarray[Any, Any]:
        """Copy it to a new NumPy array, after all that is in the stream has run.

        Parameters
        ----------
        stream : int or object, optional
            The stream in which kernels wrote the array. The default is the stream of a ``with
            stream:`` block, or the default stream outside one.

        Returns
        -------
        numpy.ndarray
            A new array in host memory.

        Raises
        ------
        DriverError
            If the copy fails, or a kernel before it in the stream did.
        """
        import numpy as np

        result = np.empty(self.shape, self.dtype)
        self._copy_to(bytes_of(result), stream_or_current(stream, self.device))
        return result

    def copy_from(self, source: Any, stream: object = None) -> None:
        """Copy an array into this one.

        Parameters
        ----------
        source : array
            An array of the same shape and element type, in C order if it is on a device. It may be
            a DeviceArray, anything that ``numpy.asarray`` accepts, or a framework's array on any
            device of the driver.
        stream : int or object, optional
            The stream to copy in. With a stream, the call does not wait for the copy. Leave memory
            from :func:`pinned` unchanged until the stream has done the copy; other host memory has
            been read when the call returns. Without a stream, the copy runs in the current stream,
            as in :meth:`numpy`, and is complete when the call returns.

        Raises
        ------
        TypeError, ValueError
            If the shapes, the element types or the kinds of memory do not match.
        DriverError
            If the copy fails.
        """
        copy_in(self, source, stream)

    def copy_to(self, target: Any, stream: object = None) -> None:
        """Copy this array into another one.

        Parameters
        ----------
        target : array
            As the source in :meth:`copy_from`; a NumPy array must be in C order and may be
            written.
        stream : int or object, optional
            As in :meth:`copy_from`: only memory of :func:`pinned` and of devices is copied to
            without waiting.

        Raises
        ------
        TypeError, ValueError
            If the shapes, the element types or the memory do not go together.
        DriverError
            If the copy fails, or a kernel before it in the stream did.
        """
        copy_out(self, target, stream)

    def fill(self, value: Any, stream: object = None) -> None:
        """Set every element to a value, without waiting for it.

        Parameters
        ----------
        value : number
            The new value of every element.
        stream : Stream, int or stream of a framework, optional
            The stream to run in; the current one by default.

        Raises
        ------
        TypeError, ValueError, OverflowError
            If the value does not fit the array's type.
        """
        fill_elements(self, value, stream)

    def on_host(self) -> np.ndarray[Any, Any]:
        """Return a NumPy array over the same memory, which :func:`managed` made.

        Kernels that touch it must have ended: wait for their stream before.

        Returns
        -------
        numpy.ndarray
            An array over the same memory. It keeps the memory alive.

        Raises
        ------
        ValueError
            If it is memory that only the device reaches.
        """
        if self._dlpack_device[0] not in (DeviceType.CUDA_MANAGED, DeviceType.CPU):
            raise ValueError(
                "the host can read only managed memory: allocate the array with "
                "culaunch.managed, or copy it with array.numpy()"
            )
        # The NumPy array keeps this one alive, and therefore the memory.
        return over_host(self.address, self.shape, self.dtype, self)

    def _part(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        return over(
            self._driver, self._dlpack_device, self.address + offset, shape, dtype, keeper=self
        )

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        # With False, NumPy 2 requests an error instead of a copy.
        if copy is False:
            raise ValueError(
                "copy=False is not possible for an array on a device, which NumPy must copy: "
                "leave it out, or use culaunch.managed"
            )
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
        # A copy would need a stream, which DLPack does not provide here.
        if copy or dl_device not in (None, self._dlpack_device, list(self._dlpack_device)):
            raise BufferError(
                "a DeviceArray can be exported only without a copy and on its own device: leave "
                "out copy= and dl_device="
            )
        if max_version is not None and [type(one) for one in _items(max_version)] != [int, int]:
            raise TypeError(f"max_version must be a tuple of two ints (got {spell(max_version)})")
        return self._dlpack(max_version is not None and max_version[0] >= 1)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._dlpack_device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        # The interface is for GPU memory. Other objects must not have the attribute.
        if self._dlpack_device[0] in (DeviceType.CPU, DeviceType.EXT_DEV):
            raise AttributeError("an array in the memory of an emulated device")
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


def over(
    driver: Any,
    device: tuple[int, int],
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    keeper: object,
) -> DeviceArray:
    """Return an array over memory that ``keeper`` holds; ``device`` is DLPack's type and id."""
    made = DeviceArray._over(driver, *device, address, shape, *packed(dtype), keeper)  # noqa: SLF001 - the extension's constructor
    made.dtype = dtype
    return made


def _items(given: object) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (tuple, list)) else ()
