"""Functions for CUDA arrays that culaunch itself does not use, and descriptions of objects."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._emulator.driver.texture_types import (
    ArrayDescriptor,
    ResourceDescriptor,
    TextureDescriptor,
)
from culaunch._emulator.driver.textures import MipmappedArray
from culaunch._emulator.fault import INVALID_VALUE
from culaunch._emulator.libcuda.array_copies import DRIVER_COPIES, copy_function
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.memory.images import ArrayShape, CudaArray


class Described(EmulatedDriver):
    """The descriptions that objects were created with, by the function that asks for them."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._descriptions: dict[tuple[str, int], bytes] = {}

    def describe(self, handle: int, **descriptions: bytes) -> None:
        """Keep what a function returns for an object."""
        for function, data in descriptions.items():
            self._descriptions[function, handle] = data

    def description(self, function: str, out: int, handle: int) -> None:
        """Write what a function returns for an object."""
        data = self._descriptions.get((function, handle))
        if data is None or self.device.texture_units.get(handle) is None:
            raise Refusal(INVALID_VALUE, f"{handle:#x} is not an object that {function} knows")
        ctypes.memmove(out, data, len(data))


class ArrayFunctions(Described):
    """The functions ``cuArray...``, ``cuMipmappedArray...`` and those that describe objects."""

    @takes("*p p")
    def cuArrayCreate(self, out: Any, descriptor: int) -> None:
        given = (ctypes.c_size_t * 2).from_address(descriptor)
        kind = (ctypes.c_uint * 2).from_address(descriptor + ctypes.sizeof(given))
        self.add_array(out, ArrayDescriptor(*given, 0, *kind))

    @takes("p p")
    def cuArray3DGetDescriptor(self, out: int, array: int) -> None:
        descriptor = ArrayDescriptor(*self._array(array).shape)
        ctypes.memmove(out, ctypes.addressof(descriptor), ctypes.sizeof(descriptor))

    @takes("p p")
    def cuArrayGetDescriptor(self, out: int, array: int) -> None:
        shape = self._array(array).shape
        (ctypes.c_size_t * 2).from_address(out)[:] = [*shape[:2]]
        (ctypes.c_uint * 2).from_address(out + 16)[:] = [shape.format, shape.channels]

    @takes("*p p u")
    def cuMipmappedArrayCreate(self, out: Any, descriptor: int, levels: int) -> None:
        self.require_context()
        shape = ArrayDescriptor.from_address(descriptor).shape()
        out[0] = self.add_mipmap(shape, levels)

    def add_mipmap(self, shape: ArrayShape, levels: int) -> int:
        """Return the handle of a new mipmapped array."""
        most = max(shape.sizes).bit_length()
        if not levels:
            raise Refusal(INVALID_VALUE, "a mipmapped array has at least one level")
        numbers = range(min(levels, most))
        return self.add(MipmappedArray([self.add(CudaArray(shape.level(n))) for n in numbers]))

    @takes("*p p u")
    def cuMipmappedArrayGetLevel(self, out: Any, array: int, level: int) -> None:
        levels = self.get(array, MipmappedArray).levels
        if level >= len(levels):
            raise Refusal(INVALID_VALUE, f"the array has {len(levels)} levels (got level {level})")
        out[0] = levels[level]

    @takes("p")
    def cuMipmappedArrayDestroy(self, array: int) -> None:
        for level in self.get(array, MipmappedArray).levels:
            self.cuArrayDestroy(level)
        self.remove(array)

    # -- objects

    def cuTexObjectCreate(self, out: Any, resource: int, texture: int, view: int) -> None:
        super().cuTexObjectCreate(out, resource, texture, view)
        self.describe(
            out[0],
            cuTexObjectGetResourceDesc=ctypes.string_at(
                resource, ctypes.sizeof(ResourceDescriptor)
            ),
            cuTexObjectGetTextureDesc=ctypes.string_at(texture, ctypes.sizeof(TextureDescriptor)),
        )

    def cuSurfObjectCreate(self, out: Any, resource: int) -> None:
        super().cuSurfObjectCreate(out, resource)
        data = ctypes.string_at(resource, ctypes.sizeof(ResourceDescriptor))
        self.describe(out[0], cuSurfObjectGetResourceDesc=data)

    @takes("p q")
    def cuTexObjectGetResourceDesc(self, out: int, texture: int) -> None:
        self.description("cuTexObjectGetResourceDesc", out, texture)

    @takes("p q")
    def cuTexObjectGetTextureDesc(self, out: int, texture: int) -> None:
        self.description("cuTexObjectGetTextureDesc", out, texture)

    @takes("p q")
    def cuSurfObjectGetResourceDesc(self, out: int, surface: int) -> None:
        self.description("cuSurfObjectGetResourceDesc", out, surface)


for _name, _copy in DRIVER_COPIES.items():
    setattr(ArrayFunctions, _name, copy_function(_name, *_copy))
