"""CUDA's runtime for arrays, textures and surfaces: its structures become the driver's."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from culaunch._emulator.driver.c_types import Extent
from culaunch._emulator.driver.graph_nodes import CopyParams
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.driver.texture_types import (
    ArrayDescriptor,
    ResourceDescriptor,
    TextureDescriptor,
)
from culaunch._emulator.fault import INVALID_VALUE
from culaunch._emulator.libcuda.array_copies import RUNTIME_COPIES, copy_function
from culaunch._emulator.libcuda.arrays import ArrayFunctions
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.libcuda.memory import ProgramMemoryFunctions
from culaunch._emulator.memory.texture_formats import FORMATS

if TYPE_CHECKING:
    from culaunch._emulator.memory.images import ArrayShape

# cudaChannelFormatKind: signed, unsigned, float.
_KINDS = "iuf"
_ARRAY, _UNIFIED = 3, 4
_size, _int = ctypes.c_size_t, ctypes.c_int


class _Channels(ctypes.Structure):
    """``cudaChannelFormatDesc``: the bits of each channel, and the kind of all."""

    _fields_ = (("bits", _int * 4), ("kind", _int))

    @classmethod
    def of(cls, shape: ArrayShape) -> _Channels:
        """Describe the texels of an array."""
        bits = 8 * shape.item.dtype.itemsize
        each = [bits if i < shape.channels else 0 for i in range(4)]
        return cls((_int * 4)(*each), _KINDS.index(shape.item.dtype.kind))

    def format(self) -> tuple[int, int]:
        """Return the driver's format and the number of channels."""
        sizes = {bits for bits in self.bits if bits}
        name = f"{_KINDS[self.kind] if self.kind < 3 else '?'}{max(sizes, default=0) // 8}"
        for number, item in FORMATS.items():
            if len(sizes) == 1 and item.dtype.str[1:] == name:
                return number, sum(bits > 0 for bits in self.bits)
        raise Refusal(INVALID_VALUE, f"no format has channels of {list(self.bits)} bits")


class _Linear(ctypes.Structure):
    _fields_ = (
        ("address", ctypes.c_void_p),
        ("channels", _Channels),
        ("width", _size),
        ("height", _size),
        ("pitch", _size),
    )


class _Union(ctypes.Union):
    _fields_ = (("handle", ctypes.c_void_p), ("linear", _Linear))


class _Resource(ctypes.Structure):
    """``cudaResourceDesc``."""

    _fields_ = (("type", _int), ("resource", _Union))

    def for_driver(self) -> ResourceDescriptor:
        """Return the driver's structure."""
        own = ResourceDescriptor(type=self.type)
        own.resource.handle = self.resource.handle
        if self.type >= ResourceDescriptor.LINEAR:
            given, linear = self.resource.linear, own.resource.linear
            linear.format, linear.channels = given.channels.format()
            linear.width, linear.height, linear.pitch = given.width, given.height, given.pitch
        return own


class _Texture(ctypes.Structure):
    """``cudaTextureDesc``."""

    _fields_ = (
        ("addresses", _int * 3),
        ("filter", _int),
        ("reads_normalized", _int),
        ("srgb", _int),
        ("border", ctypes.c_float * 4),
        ("is_normalized", _int),
        ("max_anisotropy", ctypes.c_uint),
        ("mipmap_filter", _int),
        ("bias", ctypes.c_float),
        ("least", ctypes.c_float),
        ("most", ctypes.c_float),
        ("is_bilinear", _int),
        ("is_seamless", _int),
    )

    def for_driver(self) -> TextureDescriptor:
        """Return the driver's structure."""
        flags = (not self.reads_normalized) + 2 * bool(self.is_normalized)
        flags += 0x10 * bool(self.srgb) + 0x40 * bool(self.is_seamless)
        names = [
            name for name, _ in TextureDescriptor._fields_ if name not in ("flags", "reserved")
        ]
        values: dict[str, Any] = {name: getattr(self, name) for name in names}
        own = TextureDescriptor(flags=flags)
        for name, value in values.items():
            if isinstance(value, ctypes.Array):
                getattr(own, name)[:] = value[:]
            else:
                setattr(own, name, value)
        return own


class _Side(ctypes.Structure):
    """The members of ``cudaMemcpy3DParms`` for one side."""

    _fields_ = (
        ("array", ctypes.c_void_p),
        ("position", _size * 3),
        ("address", ctypes.c_void_p),
        ("pitch", _size),
        ("width", _size),
        ("height", _size),
    )


class _Copy(ctypes.Structure):
    """``cudaMemcpy3DParms``."""

    _fields_ = (("source", _Side), ("target", _Side), ("extent", Extent), ("kind", _int))


class RuntimeArrayFunctions(ArrayFunctions, ProgramMemoryFunctions):
    """The functions ``cuda...Array``, ``cuda...Object`` and ``cudaMemcpy3D``."""

    @takes("*p p z z u")
    def cudaMallocArray(self, out: Any, channels: int, width: int, height: int, flags: int) -> None:
        self.cudaMalloc3DArray(out, channels, (width, height, 0), flags)

    @takes("*p p e u")
    def cudaMalloc3DArray(self, out: Any, channels: int, extent: Any, flags: int) -> None:
        kind = _Channels.from_address(channels).format()
        self.add_array(out, ArrayDescriptor(*extent, *kind, flags))

    @takes("*p p e u u")
    def cudaMallocMipmappedArray(
        self, out: Any, channels: int, extent: Any, levels: int, flags: int
    ) -> None:
        self.require_context()
        kind = _Channels.from_address(channels).format()
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
        ctypes.memmove(out, bytes(_Channels.of(self._array(array).shape)), ctypes.sizeof(_Channels))

    @takes("p e")
    def cudaMalloc3D(self, out: int, extent: Any) -> None:
        width, height, depth = extent
        address, pitch = (ctypes.c_ulonglong * 1)(), (_size * 1)()
        self.cuMemAllocPitch(address, pitch, width, height * max(depth, 1), 4)
        (_size * 4).from_address(out)[:] = [address[0], pitch[0], width, height]

    # -- copies

    @takes("p p")
    def cudaMemcpy3DAsync(self, copy: int, stream: int) -> None:
        given, own = _Copy.from_address(copy), CopyParams()
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
        self.cuMemcpy3DAsync(ctypes.addressof(own), stream)

    @takes("p")
    def cudaMemcpy3D(self, copy: int) -> None:
        self.cudaMemcpy3DAsync(copy, 0)

    # -- objects

    @takes("*q p p p")
    def cudaCreateTextureObject(self, out: Any, resource: int, texture: int, view: int) -> None:
        own = _Resource.from_address(resource).for_driver()
        sampler = _Texture.from_address(texture).for_driver()
        self.cuTexObjectCreate(out, ctypes.addressof(own), ctypes.addressof(sampler), view)
        self.describe(
            out[0],
            cudaGetTextureObjectResourceDesc=ctypes.string_at(resource, ctypes.sizeof(_Resource)),
            cudaGetTextureObjectTextureDesc=ctypes.string_at(texture, ctypes.sizeof(_Texture)),
        )

    @takes("*q p")
    def cudaCreateSurfaceObject(self, out: Any, resource: int) -> None:
        own = _Resource.from_address(resource).for_driver()
        self.cuSurfObjectCreate(out, ctypes.addressof(own))
        data = ctypes.string_at(resource, ctypes.sizeof(_Resource))
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
