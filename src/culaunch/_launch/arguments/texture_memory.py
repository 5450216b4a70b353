"""The memory of textures and surfaces: CUDA arrays, which nothing else can access."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from culaunch._base.array_descriptor import ArrayDescriptor
from culaunch._base.values import spell
from culaunch._launch.arrays.copies import is_on_device
from culaunch._launch.arrays.device_array import DeviceArray
from culaunch._launch.arrays.host_memory import host_array

if TYPE_CHECKING:
    import numpy as np

    from culaunch._core import Driver

# cuda.h: CUarray_format by NumPy's kind and size, CUmemorytype, the flag of surfaces.
_FORMATS = {
    "u1": 1, "u2": 2, "u4": 3, "i1": 8, "i2": 9, "i4": 10, "f2": 16, "f4": 32,
}  # fmt: skip
_HOST, _DEVICE, _ARRAY = 1, 2, 3
_SURFACE = 2


class TextureMemory:
    """A CUDA array with a copy of an array.

    Parameters
    ----------
    driver : Driver
    device : int
        The device's ordinal.
    array : array_like
        Up to three dimensions, and one of channels after them if there is more than one.
    channels : int
    is_surface : bool
        Whether kernels may write it.
    """

    handle = 0

    def __init__(
        self, driver: Driver, device: int, array: Any, channels: int, *, is_surface: bool
    ) -> None:
        # Check before any allocation, so an invalid array leaves nothing behind.
        source = array if isinstance(array, DeviceArray) else host_array(driver, array)
        self.driver = driver
        self.device = device
        self.dtype: np.dtype[Any] = source.dtype
        self.shape: tuple[int, ...] = source.shape
        kind = _FORMATS.get(f"{self.dtype.kind}{self.dtype.itemsize}")
        if kind is None or not self.dtype.isnative:
            raise TypeError(
                "the element type of a texture must be an integer of 8, 16 or 32 bits, float16 or "
                f"float32 (got {self.dtype})"
            )
        sizes = self.shape if channels == 1 else self.shape[:-1]
        is_right = channels == 1 or self.shape[-1:] == (channels,)
        if not is_right or not 1 <= len(sizes) <= 3 or 0 in sizes:
            raise ValueError(
                "a texture must have 1 to 3 dimensions, plus one for several channels, which is "
                f"the last (got shape {self.shape} and channels={channels})"
            )
        # For a missing dimension, the driver expects 0 in the array and 1 in copies.
        width, height, depth = (*reversed(sizes), 0, 0)[:3]
        self._extent = width * channels * self.dtype.itemsize, max(height, 1), max(depth, 1)
        descriptor = ArrayDescriptor(width, height, depth, kind, channels, _SURFACE * is_surface)
        self.handle = driver.array_create(device, descriptor)
        self.copy_in(source, 0)

    def copy_in(self, array: Any, stream: int) -> None:
        """Copy an array of the same shape and type into it, and wait."""
        on_device = is_on_device(array)
        if on_device and not isinstance(array, DeviceArray):
            raise TypeError(
                f"array must be a NumPy array or a culaunch.DeviceArray (got {spell(array)}): copy "
                "it with cl.empty(like=array).copy_from(array)"
            )
        import numpy as np

        source: Any = array if on_device else np.ascontiguousarray(host_array(self.driver, array))
        if (source.shape, source.dtype) != (self.shape, self.dtype):
            raise ValueError(
                f"array must have shape {self.shape} and dtype {self.dtype} (got {source.shape} "
                f"and {source.dtype})"
            )
        copy = self._copy()
        if on_device:
            copy.source_type, copy.source_device = _DEVICE, source.address
        else:
            copy.source_type, copy.source_host = _HOST, source.ctypes.data
        # The host's rows are contiguous. The layout of the CUDA array is known only to the driver.
        copy.source_pitch, copy.source_height = self._extent[:2]
        copy.target_type, copy.target_array = _ARRAY, self.handle
        self._run(copy, stream)

    def copy_out(self, stream: int) -> np.ndarray[Any, Any]:
        """Return a copy as a NumPy array."""
        import numpy as np

        result = np.empty(self.shape, self.dtype)
        copy = self._copy()
        copy.source_type, copy.source_array = _ARRAY, self.handle
        copy.target_type, copy.target_host = _HOST, result.ctypes.data
        copy.target_pitch, copy.target_height = self._extent[:2]
        self._run(copy, stream)
        return result

    def _copy(self) -> CopyDescriptor:
        width, height, depth = self._extent
        return CopyDescriptor(width=width, height=height, depth=depth)

    def _run(self, copy: CopyDescriptor, stream: int) -> None:
        self.driver.copy_3d(self.device, copy, stream)
        # The source may be a temporary copy of this call, and the driver may still read it.
        self.driver.stream_synchronize(self.device, stream)

    def __del__(self) -> None:
        # The class attribute is 0, for an object whose constructor failed.
        if self.handle:
            self.driver.array_destroy(self.device, self.handle)
            self.handle = 0


_size, _uint, _handle = ctypes.c_size_t, ctypes.c_uint, ctypes.c_void_p


class CopyDescriptor(ctypes.Structure):
    """``CUDA_MEMCPY3D``."""

    _fields_ = (
        ("source_at", _size * 4),
        ("source_type", _uint),
        ("source_host", _handle),
        ("source_device", ctypes.c_uint64),
        ("source_array", _handle),
        ("source_reserved", _handle),
        ("source_pitch", _size),
        ("source_height", _size),
        ("target_at", _size * 4),
        ("target_type", _uint),
        ("target_host", _handle),
        ("target_device", ctypes.c_uint64),
        ("target_array", _handle),
        ("target_reserved", _handle),
        ("target_pitch", _size),
        ("target_height", _size),
        ("width", _size),
        ("height", _size),
        ("depth", _size),
    )


class ResourceDescriptor(ctypes.Structure):
    """``CUDA_RESOURCE_DESC`` of an array."""

    _fields_ = (
        ("type", _uint),
        ("array", _handle),
        ("reserved", ctypes.c_ubyte * 120),
        ("flags", _uint),
    )

    @classmethod
    def of(cls, array: int) -> ResourceDescriptor:
        """Describe a CUDA array."""
        return cls(type=0, array=array)  # CU_RESOURCE_TYPE_ARRAY


class TextureDescriptor(ctypes.Structure):
    """``CUDA_TEXTURE_DESC``."""

    _fields_ = (
        ("addresses", _uint * 3),
        ("filter", _uint),
        ("flags", _uint),
        ("max_anisotropy", _uint),
        ("mipmap_filter", _uint),
        ("mipmap", ctypes.c_float * 3),
        ("border", ctypes.c_float * 4),
        ("reserved", ctypes.c_int * 12),
    )
