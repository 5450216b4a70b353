"""CUDA's runtime for arrays, textures and surfaces: its structures become the driver's."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._emulator.driver.graph_nodes import CopyParams
from culaunch._emulator.driver.texture_types import ArrayDescriptor
from culaunch._emulator.libcuda.array_copies import RUNTIME_COPIES, copy_function
from culaunch._emulator.libcuda.arrays import ArrayFunctions
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.libcuda.memory import ProgramMemoryFunctions
from culaunch._emulator.libcuda.runtime_array_types import (
    Channels,
    Copy3D,
    Resource,
    TextureParams,
)

_ARRAY, _UNIFIED = 3, 4  # CUmemorytype
_size = ctypes.c_size_t


class RuntimeArrayFunctions(ArrayFunctions, ProgramMemoryFunctions):
    """The functions ``cuda...Array``, ``cuda...Object`` and ``cudaMemcpy3D``."""

    @takes("*p p z z u")
    def cudaMallocArray(self, out: Any, channels: int, width: int, height: int, flags: int) -> None:
        self.cudaMalloc3DArray(out, channels, (width, height, 0), flags)

    @takes("*p p e u")
    def cudaMalloc3DArray(self, out: Any, channels: int, extent: Any, flags: int) -> None:
        kind = Channels.from_address(channels).format()
        self.add_array(out, ArrayDescriptor(*extent, *kind, flags))

    @takes("*p p e u u")
    def cudaMallocMipmappedArray(
        self, out: Any, channels: int, extent: Any, levels: int, flags: int
    ) -> None:
        self.require_context()
        kind = Channels.from_address(channels).format()
        out[0] = self.add_mipmap(ArrayDescriptor(*extent, *kind, flags).shape(), levels)

    @takes("p")
    def cudaFreeArray(self, array: int | None) -> None:
        if array:  # freeing null does nothing
            self.cuArrayDestroy(array)

    @takes("p p *u p")
    def cudaArrayGetInfo(self, channels: int, extent: int, flags: Any, array: int) -> None:
        shape = self._array(array).shape
        if channels:
            self.cudaGetChannelDesc(channels, array)
        if extent:
            (_size * 3).from_address(extent)[:] = [*shape[:3]]
        if flags:
            flags[0] = shape.flags

    @takes("p p")
    def cudaGetChannelDesc(self, out: int, array: int) -> None:
        ctypes.memmove(out, bytes(Channels.of(self._array(array).shape)), ctypes.sizeof(Channels))

    @takes("p e")
    def cudaMalloc3D(self, out: int, extent: Any) -> None:
        width, height, depth = extent
        address, pitch = (ctypes.c_ulonglong * 1)(), (_size * 1)()
        self.cuMemAllocPitch(address, pitch, width, height * max(depth, 1), 4)
        (_size * 4).from_address(out)[:] = [address[0], pitch[0], width, height]

    # -- copies

    @takes("p p")
    def cudaMemcpy3DAsync(self, copy: int, stream: int) -> None:
        own = self.driver_copy(Copy3D.from_address(copy))
        self.cuMemcpy3DAsync(ctypes.addressof(own), stream)

    def driver_copy(self, given: Copy3D) -> CopyParams:
        """Return the driver's structure for a copy."""
        own = CopyParams()
        own.width, own.height, own.depth = given.extent
        sides = ((given.source, own.source), (given.target, own.target))
        # With an array, the first position of the array and the width count its texels.
        sizes = [self._array(side.array).shape.texel_size for side, _ in sides if side.array]
        own.width *= max(sizes, default=1)
        for side, to in sides:
            to.x, to.y, to.z = side.position
            to.memory_type, to.array, to.device = _ARRAY, side.array, side.address or 0
            if side.array:
                to.x *= self._array(side.array).shape.texel_size
            else:
                to.memory_type, to.pitch, to.height = _UNIFIED, side.pitch, side.height
        return own

    # -- objects

    @takes("*q p p p")
    def cudaCreateTextureObject(self, out: Any, resource: int, texture: int, view: int) -> None:
        own = Resource.from_address(resource).for_driver()
        sampler = TextureParams.from_address(texture).for_driver()
        self.cuTexObjectCreate(out, ctypes.addressof(own), ctypes.addressof(sampler), view)
        self.describe(
            out[0],
            cudaGetTextureObjectResourceDesc=ctypes.string_at(resource, ctypes.sizeof(Resource)),
            cudaGetTextureObjectTextureDesc=ctypes.string_at(texture, ctypes.sizeof(TextureParams)),
        )

    @takes("*q p")
    def cudaCreateSurfaceObject(self, out: Any, resource: int) -> None:
        own = Resource.from_address(resource).for_driver()
        self.cuSurfObjectCreate(out, ctypes.addressof(own))
        data = ctypes.string_at(resource, ctypes.sizeof(Resource))
        self.describe(out[0], cudaGetSurfaceObjectResourceDesc=data)

    @takes("p q")
    def cudaGetTextureObjectResourceDesc(self, out: int, texture: int) -> None:
        self.description("cudaGetTextureObjectResourceDesc", out, texture)

    @takes("p q")
    def cudaGetTextureObjectTextureDesc(self, out: int, texture: int) -> None:
        self.description("cudaGetTextureObjectTextureDesc", out, texture)

    @takes("p q")
    def cudaGetSurfaceObjectResourceDesc(self, out: int, surface: int) -> None:
        self.description("cudaGetSurfaceObjectResourceDesc", out, surface)


for _name, _sides in RUNTIME_COPIES.items():
    setattr(RuntimeArrayFunctions, _name, copy_function(_name, *_sides))
