"""The emulated driver's functions for CUDA arrays, copies of them, textures and surfaces."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._emulator.driver.graph_nodes import CopyParams, CopySide
from culaunch._emulator.driver.memory import MemoryFunctions
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.driver.texture_types import (
    ArrayDescriptor,
    ResourceDescriptor,
    TextureDescriptor,
    checked_shape,
)
from culaunch._emulator.fault import INVALID_VALUE, NOT_SUPPORTED
from culaunch._emulator.memory.images import SURFACE, ArrayShape, CudaArray, LinearImage
from culaunch._emulator.memory.surface import Surface
from culaunch._emulator.memory.texture import Texture

__all__ = ["MipmappedArray", "TextureFunctions"]

_DEVICE, _ARRAY = 2, 3  # CUmemorytype
_ALIGNMENT, _PITCH_ALIGNMENT = 512, 32
_SEAMLESS = 0x40  # CU_TRSF_SEAMLESS_CUBEMAP


class MipmappedArray:
    """A mipmapped array: the handles of its levels."""

    def __init__(self, levels: list[int]) -> None:
        self.levels = levels


class TextureFunctions(MemoryFunctions):
    """The functions ``cuArray...``, ``cuTexObject...``, ``cuSurfObject...`` and ``cuMemcpy3D``."""

    def cuArray3DCreate(self, out: Any, descriptor: int) -> None:
        self.add_array(out, _at(descriptor, ArrayDescriptor))

    def add_array(self, out: Any, descriptor: ArrayDescriptor) -> None:
        """Create an array."""
        self.require_context()
        out[0] = self.add(CudaArray(descriptor.shape()))

    def cuArrayDestroy(self, array: int) -> None:
        self._array(array).destroy()
        self.remove(array)

    def _array(self, handle: int) -> CudaArray:
        array: CudaArray = self.get(handle, CudaArray)
        return array

    # -- copies

    def cuMemcpy3DAsync(self, copy: int, stream: int) -> None:
        # A copy of the structure, which is the program's.
        given = CopyParams.from_buffer_copy(_at(copy, CopyParams))
        self.require_stream(stream)
        self.require_context()
        for side in (given.source, given.target):
            for z in range(given.depth if side.memory_type == _DEVICE else 0):
                for y in range(given.height):
                    self._require_memory(self._located(side, given).row(y, z), given.width, stream)
        self.copy_rows(given)

    def copy_rows(self, copy: CopyParams) -> None:
        """Run a copy whose memory is known."""
        source, target = (self._located(side, copy) for side in (copy.source, copy.target))
        for z in range(copy.depth):
            for y in range(copy.height):
                ctypes.memmove(target.row(y, z), source.row(y, z), copy.width)

    def _located(self, given: CopySide, copy: CopyParams) -> CopySide:
        """Return a side with complete pitches; an array becomes the memory that it has."""
        side = CopySide.from_buffer_copy(given)
        if side.memory_type != _ARRAY:
            side.pitch = side.pitch or copy.width
            side.height = side.height or copy.height
            return side
        array = self._array(side.array)
        _, rows, _ = array.shape.sizes
        ends = (side.x + copy.width, side.y + copy.height, side.z + copy.depth)
        sizes = array.pitch, rows, array.shape.slices
        if any(end > size for end, size in zip(ends, sizes, strict=True)):
            raise Refusal(
                INVALID_VALUE,
                f"the copy ends at {ends} of an array of {sizes} (bytes, rows, slices)",
            )
        side.memory_type, side.device = _DEVICE, array.data.ctypes.data
        side.pitch, side.height = array.pitch, rows
        return side

    # -- textures and surfaces

    def cuTexObjectCreate(self, out: Any, resource: int, texture: int, view: int) -> None:
        self.require_context()
        if view:
            raise Refusal(NOT_SUPPORTED, "views of resources are not emulated: pass null")
        levels = self._levels(_at(resource, ResourceDescriptor))
        sampler = _at(texture, TextureDescriptor).sampler()
        if max(sampler.addresses) > 3 or max(sampler.filter, sampler.mipmap_filter) > 1:
            raise Refusal(INVALID_VALUE, "there is no such address mode or filter")
        if sampler.flags & _SEAMLESS:
            raise Refusal(NOT_SUPPORTED, "filters across the faces of a cube are not emulated")
        made = Texture(levels, sampler)
        if sampler.filter and made.as_integer:
            raise Refusal(INVALID_VALUE, "a linear filter needs floats, or normalized reads")
        self._add_unit(out, made)

    def cuSurfObjectCreate(self, out: Any, resource: int) -> None:
        self.require_context()
        given = _at(resource, ResourceDescriptor)
        if given.type != ResourceDescriptor.ARRAY:
            raise Refusal(INVALID_VALUE, "a surface needs a CUDA array")
        array = self._array(given.resource.handle)
        if not array.shape.flags & SURFACE:
            raise Refusal(
                INVALID_VALUE, "the array of a surface must have CUDA_ARRAY3D_SURFACE_LDST"
            )
        self._add_unit(out, Surface(array))

    def _add_unit(self, out: Any, unit: Texture | Surface) -> None:
        handle = self.add(unit)
        self.device.texture_units[handle] = unit
        out[0] = handle

    def _levels(self, given: ResourceDescriptor) -> list[CudaArray | LinearImage]:
        if given.type == ResourceDescriptor.ARRAY:
            return [self._array(given.resource.handle)]
        if given.type == ResourceDescriptor.MIPMAP:
            levels = self.get(given.resource.handle, MipmappedArray).levels
            return [self._array(level) for level in levels]
        linear = given.resource.linear
        is_2d = given.type == ResourceDescriptor.PITCH_2D
        shape = ArrayShape(linear.width, linear.height * is_2d, 0, linear.format, linear.channels)
        pitch = linear.pitch * is_2d
        checked_shape(shape)
        if not is_2d:
            shape = checked_shape(shape._replace(width=linear.width // shape.texel_size))
        if linear.address % _ALIGNMENT or pitch % _PITCH_ALIGNMENT:
            raise Refusal(
                INVALID_VALUE,
                f"the address {linear.address:#x} is not a multiple of {_ALIGNMENT}, or the pitch "
                f"{pitch} is not a multiple of {_PITCH_ALIGNMENT}",
            )
        if is_2d and pitch < shape.width * shape.texel_size:
            raise Refusal(INVALID_VALUE, f"the pitch {pitch} is less than a row")
        return [LinearImage(shape, linear.address, pitch)]

    def cuTexObjectDestroy(self, texture: int) -> None:
        self._remove_unit(texture, Texture)

    def cuSurfObjectDestroy(self, surface: int) -> None:
        self._remove_unit(surface, Surface)

    def _remove_unit(self, handle: int, kind: Any) -> None:
        self.get(handle, kind)
        self.remove(handle)
        self.device.texture_units[handle] = None


def _at(address: int, kind: Any) -> Any:
    if not address:
        raise Refusal(INVALID_VALUE, f"no {kind.__name__} at address 0")
    return kind.from_address(address)
