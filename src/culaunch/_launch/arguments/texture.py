"""Textures and surfaces: arrays that kernels read and write through CUDA's texture units."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_choice, checked_flag
from culaunch._base.values import fits
from culaunch._launch.arguments.texture_memory import (
    ResourceDescriptor,
    TextureDescriptor,
    TextureMemory,
)
from culaunch._launch.devices.driver import current_driver, device_ordinal
from culaunch._launch.devices.stream_handle import stream_or_current

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

# cuda.h: CUfilter_mode, CUaddress_mode, the flags of textures.
_FILTERS = {"point": 0, "linear": 1}
_ADDRESSES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
_READ_AS_INTEGER, _NORMALIZED_COORDINATES = 1, 2


class TextureUnitObject(ctypes.c_uint64):
    """The common base of textures and surfaces: the kernel's handle, and the memory."""

    _memory: TextureMemory

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape, channels included."""
        return self._memory.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements."""
        return self._memory.dtype

    @property
    def device(self) -> int:
        """The ordinal of its device."""
        return self._memory.device


class Surface(TextureUnitObject):
    """An array that kernels read and write through a ``cudaSurfaceObject_t``.

    The array is copied into new memory. Pass the surface to a kernel. ``Texture(surface)`` makes a
    texture over the same memory.

    Parameters
    ----------
    array : array_like
        ``(width)``, ``(height, width)`` or ``(depth, height, width)`` elements of 8, 16 or 32 bits.
        If ``channels`` is not 1, the channels are an additional last dimension.
    channels : int, optional
        1, 2 or 4.
    device : int, optional
        The device's ordinal; the current one by default.

    Attributes
    ----------
    shape : tuple[int, ...]
        The array's shape, with channels.
    dtype : numpy.dtype
    device : int

    Raises
    ------
    TypeError, ValueError
        If textures do not support the elements, the dimensions or the channels.
    DriverError
        If the driver fails.

    Examples
    --------
    >>> surface = cl.arguments.Surface(np.zeros((16, 16), "float32"))  # doctest: +SKIP
    >>> kernel[1, (16, 16)](surface)  # doctest: +SKIP
    >>> surface.numpy()  # doctest: +SKIP
    """

    def __init__(self, array: ArrayLike, *, channels: int = 1, device: int | None = None) -> None:
        self._memory = _memory(array, channels, device, is_surface=True)
        driver, ordinal = self._memory.driver, self._memory.device
        resource = ResourceDescriptor.of(self._memory.handle)
        self.value = driver.surface_create(ordinal, resource)

    def copy_from(self, array: ArrayLike, stream: object = None) -> None:
        """Copy an array of the same shape and type into the surface, and wait for the copy.

        Parameters
        ----------
        array : array
            An array of NumPy or of a framework.
        stream : Stream, int or stream of a framework, optional
            The stream to run in; the current one by default.

        Raises
        ------
        ValueError
            If the shape or the type is another.
        """
        self._memory.copy_in(array, stream_or_current(stream, self.device))

    def numpy(self, stream: object = None) -> np.ndarray[Any, Any]:
        """Copy the surface to a new NumPy array, after all earlier work in the stream has run.

        Parameters
        ----------
        stream : Stream, int or stream of a framework, optional
            The stream to run in; the current one by default.

        Returns
        -------
        numpy.ndarray
            The copy.
        """
        return self._memory.copy_out(stream_or_current(stream, self.device))

    def __repr__(self) -> str:
        return f"<culaunch.arguments.Surface {self.shape} {self.dtype} on device {self.device}>"

    def __del__(self) -> None:
        # The driver's module may no longer exist at the end of a process. Do not destroy a handle
        # that was never created.
        if self.value:
            self._memory.driver.surface_destroy(self._memory.device, self.value)
            self.value = 0


class Texture(TextureUnitObject):
    """An array that kernels read through a ``cudaTextureObject_t``.

    Parameters
    ----------
    array : array_like or Surface
        As in :class:`culaunch.arguments.Surface`. An array is copied. A surface shares its memory:
        one kernel writes it, and the next one samples it.
    channels : int, optional
        1, 2 or 4; a surface has its own number.
    filter : {"point", "linear"}, optional
        Whether a read returns the nearest element, or interpolates between the neighbors.
    address : {"clamp", "border", "wrap", "mirror"}, optional
        Reads outside the array return the nearest element, zero, or the repeated array. ``"wrap"``
        and ``"mirror"`` need normalized coordinates.
    normalized : bool, optional
        Whether coordinates range from 0 to 1 instead of to the size.
    as_float : bool, optional
        Whether integers of 8 and 16 bits are read as floats from 0 (or -1) to 1.
    device : int, optional
        The device's ordinal; the current one by default.

    Attributes
    ----------
    shape : tuple[int, ...]
        The array's shape, with channels.
    dtype : numpy.dtype
    device : int

    Raises
    ------
    TypeError, ValueError
        If textures do not support the elements, the dimensions or the channels, or the options
        contradict each other.
    DriverError
        If the driver fails.

    Examples
    --------
    >>> image = np.eye(16, dtype="float32")
    >>> texture = cl.arguments.Texture(image, filter="linear")  # doctest: +SKIP
    >>> kernel[1, (16, 16)](y, texture)  # doctest: +SKIP
    """

    def __init__(
        self,
        array: ArrayLike | Surface,
        *,
        channels: int = 1,
        filter: str = "point",  # noqa: A002 - CUDA's word
        address: str = "clamp",
        normalized: bool = False,
        as_float: bool = False,
        device: int | None = None,
    ) -> None:
        flags = _NORMALIZED_COORDINATES * checked_flag("normalized", normalized)
        flags |= _READ_AS_INTEGER * (not checked_flag("as_float", as_float))
        mode = checked_choice("address", address, _ADDRESSES)
        filtering = checked_choice("filter", filter, _FILTERS)
        if isinstance(array, Surface):
            self._memory = array._memory  # noqa: SLF001 - a texture shares what the surface has
        else:
            self._memory = _memory(array, channels, device, is_surface=False)
        _check_together(self._memory, address, filter, normalized=normalized, as_float=as_float)
        descriptor = TextureDescriptor(addresses=(mode,) * 3, filter=filtering, flags=flags)
        driver, ordinal = self._memory.driver, self._memory.device
        resource = ResourceDescriptor.of(self._memory.handle)
        self.value = driver.texture_create(ordinal, resource, descriptor, None)

    def __repr__(self) -> str:
        return f"<culaunch.arguments.Texture {self.shape} {self.dtype} on device {self.device}>"

    def __del__(self) -> None:
        if self.value:
            self._memory.driver.texture_destroy(self._memory.device, self.value)
            self.value = 0


def _memory(array: Any, channels: int, device: int | None, *, is_surface: bool) -> TextureMemory:
    driver = current_driver()
    ordinal = device_ordinal(driver, device)
    if fits(channels, "channels", 32) not in (1, 2, 4):
        raise ValueError(f"channels must be 1, 2 or 4 (got {channels})")
    return TextureMemory(driver, ordinal, array, channels, is_surface=is_surface)


def _check_together(
    memory: TextureMemory, address: str, filtering: str, *, normalized: bool, as_float: bool
) -> None:
    # For incompatible options, the hardware silently uses another mode. They are refused here.
    if address in ("wrap", "mirror") and not normalized:
        raise ValueError(f"address={address!r} needs normalized=True")
    is_integer = memory.dtype.kind in "iu"
    if as_float and not (is_integer and memory.dtype.itemsize <= 2):
        raise ValueError(
            "as_float must be given only for integers of 8 or 16 bits (got an array of "
            f"{memory.dtype})"
        )
    if filtering == "linear" and is_integer and not as_float:
        raise ValueError(
            f"filter='linear' needs floats (got {memory.dtype}): give as_float=True, or an array "
            "of floats"
        )
