"""Variables of a module: their addresses and their contents."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from culaunch._base.optional import optional
from culaunch._base.values import counted, spell
from culaunch._core import array_info
from culaunch._launch.arrays.copies import fill_bytes, is_on_device
from culaunch._launch.arrays.device_array import DeviceArray, over
from culaunch._launch.devices.stream_handle import stream_or_current
from culaunch._launch.formats.numpy_dtypes import as_dtype, checked_dtype, filled_in
from culaunch._launch.formats.strides import is_dense
from culaunch._launch.private_members import driver_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike

    from culaunch._core import Module as CoreModule


@dataclass(frozen=True)
class GlobalVariable:
    """A ``__device__`` or ``__constant__`` variable of a module on one device.

    It may be passed to kernels for a pointer, whatever the pointer's type. It lives until its
    module is unloaded.

    Attributes
    ----------
    address : int
        Its address.
    size : int
        In bytes.
    device : int
        The ordinal of the device that it is on.
    name : str
        Its name in the image.

    Examples
    --------
    >>> module = cl.load(cl.compile("__device__ int counter[2] = {3, 4};"))
    >>> counter = module.get_global("counter")
    >>> counter.as_array(dtype="int32").numpy()
    array([3, 4], dtype=int32)
    """

    address: int
    size: int
    device: int
    name: str = ""
    # The variable keeps its module alive, whose unloading frees the memory. Two variables are equal
    # regardless of the module object.
    _module: CoreModule | None = field(default=None, repr=False, compare=False)

    def read(self, dtype: DTypeLike = "uint8", stream: object = None) -> np.ndarray[Any, Any]:
        """Copy its value to a new NumPy array, after all that is in the stream has run.

        Parameters
        ----------
        dtype : numpy.dtype or dtype-like, optional
            Of its elements, structures too: an image does not tell. Bytes by default.
        stream : int or object, optional
            As in :meth:`culaunch.DeviceArray.numpy`.

        Returns
        -------
        numpy.ndarray
            One-dimensional.

        Raises
        ------
        ValueError
            If its size is not a multiple of an element's size, or its module is unloaded.
        DriverError
            If the copy fails.
        """
        kind = as_dtype(dtype)
        # Python objects are addresses in this process, which device memory never contains.
        if kind.itemsize == 0 or self.size % kind.itemsize or kind.hasobject:
            raise ValueError(
                "dtype must have a size that divides the variable's "
                f"{counted(self.size, 'byte')} (got {kind})"
            )
        return self.as_array().numpy(stream).view(kind)

    def write(self, value: Any, stream: object = None) -> None:
        """Set the variable to the contents of an array.

        Parameters
        ----------
        value : array
            As many bytes as the variable, in C order. It may be a NumPy array or scalar, bytes, a
            ``ctypes`` structure, or an array on a device. :meth:`as_array` can write a part. An
            image does not record the variable's type, so a Python list or number is refused.
        stream : int or object, optional
            As in :meth:`culaunch.DeviceArray.copy_from`: with a stream, the call does not wait.

        Raises
        ------
        TypeError
            If it is a number or a list of Python, or contains objects.
        ValueError
            If it has another number of bytes, or the module is unloaded.
        DriverError
            If the copy fails.
        """
        array = self.as_array()
        if value is None or type(value) in (bool, int, float, complex, list, tuple, str):
            raise TypeError(
                "value must be an array or another typed value, because the image does not record "
                f"the variable's type (got {spell(value)}): pass numpy.array(value, dtype)"
            )
        if is_on_device(value):
            _of_bytes(value, array).copy_to(array, stream)
            return
        np = optional("numpy", "GlobalVariable.write", "numpy")
        host = np.ascontiguousarray(_host_bytes(np, value))
        if host.dtype.hasobject:
            raise TypeError(f"value must contain numbers (got {spell(value)})")
        if host.nbytes != self.size:
            raise ValueError(
                f"value must have the variable's {counted(self.size, 'byte')} (got "
                f"{counted(host.nbytes, 'byte')} of "
                f"{host.dtype}): write a part with "
                "variable.as_array(dtype=...)[a:b].copy_from(...)"
            )
        array.copy_from(host.reshape(-1).view("u1"), stream)

    def fill(self, value: int = 0, stream: object = None) -> None:
        """Set every byte to a value, without waiting for it.

        Parameters
        ----------
        value : int, optional
            The new value of every byte, 0 by default.
        stream : Stream, int or stream of a framework, optional
            The stream to run in; the current one by default.

        Raises
        ------
        ValueError
            If the value is not a byte, or the module is unloaded.
        """
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 256:
            raise ValueError(
                f"value must be a byte, from 0 to 255 (got {spell(value)}): set other values with "
                "variable.as_array(dtype=...).fill(value)"
            )
        fill_bytes(self.as_array(), bytes([value]), stream_or_current(stream, self.device))

    def as_array(
        self, shape: int | tuple[int, ...] | None = None, dtype: DTypeLike = "uint8"
    ) -> DeviceArray:
        """Return an array over the variable, for copies, other frameworks (DLPack) and kernels.

        Parameters
        ----------
        shape : int or tuple[int, ...], optional
            In elements, with as many bytes as the variable; one -1 is computed from the others. One
            dimension by default.
        dtype : numpy.dtype or dtype-like, optional
            The type of the elements, which an image does not record.

        Returns
        -------
        DeviceArray
            An array over the variable's memory. It keeps the module alive.

        Raises
        ------
        ValueError
            If the shape does not have the variable's bytes, or the module is unloaded.
        """
        kind = checked_dtype(dtype)
        sizes = filled_in(shape, self.size, kind)
        place = self.__dlpack_device__()
        return over(self._loaded().driver, place, self.address, sizes, kind, keeper=self._module)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._loaded().driver.device_types[0], self.device)

    def __dlpack__(self, **_: Any) -> object:
        """Raise, because DLPack has no arrays of unknown elements.

        Raises
        ------
        BufferError
            Always.
        """
        raise BufferError(
            "the element type of a variable is not in its image: pass it to "
            "variable.as_array(shape, dtype)"
        )

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The variable's memory, as untyped bytes, if the host can access it (emulated devices)."""
        if self._loaded().driver.device_types[0] != 1:
            raise AttributeError("a variable in the memory of a device")
        return self._interface()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The variable's memory, as untyped bytes."""
        if self._loaded().driver.device_types[0] == 1:
            raise AttributeError("a variable in the memory of an emulated device")
        return self._interface()

    def _interface(self) -> dict[str, Any]:
        return {
            "shape": (1,),
            # One element of raw bytes, which no framework mistakes for numbers.
            "typestr": f"|V{self.size}",
            "data": (self.address, False),
            "strides": None,
            "version": 3,
        }

    def _loaded(self) -> CoreModule:
        if self._module is None or not self._module.is_loaded:
            raise ValueError("the variable's module was unloaded: load it again")
        return self._module


def _of_bytes(array: Any, like: DeviceArray) -> DeviceArray:
    """Return the bytes of an array on a device."""
    address, shape, strides, _, bits, place = array_info(driver_of(like), array)
    if not is_dense(shape, strides):
        raise ValueError(f"value must be contiguous, in C order (got strides {strides})")
    nbytes = math.prod(shape) * (bits // 8)
    if nbytes != like.nbytes:
        raise ValueError(
            f"value must have the variable's {counted(like.nbytes, 'byte')} (got "
            f"{counted(nbytes, 'byte')})"
        )
    return over(driver_of(like), place, address, (nbytes,), like.dtype, keeper=array)


def _host_bytes(np: Any, value: Any) -> Any:
    """Return an array, or the bytes of a buffer such as a ctypes structure."""
    if not isinstance(value, np.ndarray):
        try:
            return np.frombuffer(value, np.uint8)
        except (TypeError, ValueError, BufferError):
            pass
    return np.asarray(value)
