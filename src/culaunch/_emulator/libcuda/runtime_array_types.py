"""The structures of CUDA's runtime that describe arrays, textures and copies."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from culaunch._emulator.driver.c_types import Extent
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.driver.texture_types import ResourceDescriptor, TextureDescriptor
from culaunch._emulator.fault import INVALID_VALUE
from culaunch._emulator.memory.texture_formats import FORMATS

if TYPE_CHECKING:
    from culaunch._emulator.memory.images import ArrayShape

# cudaChannelFormatKind: signed, unsigned, float.
_KINDS = "iuf"
_size, _int = ctypes.c_size_t, ctypes.c_int


class Channels(ctypes.Structure):
    """``cudaChannelFormatDesc``: the bits of each channel, and the kind of all."""

    _fields_ = (("bits", _int * 4), ("kind", _int))

    @classmethod
    def of(cls, shape: ArrayShape) -> Channels:
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
        ("channels", Channels),
        ("width", _size),
        ("height", _size),
        ("pitch", _size),
    )


class _Union(ctypes.Union):
    _fields_ = (("handle", ctypes.c_void_p), ("linear", _Linear))


class Resource(ctypes.Structure):
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


class TextureParams(ctypes.Structure):
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


class CopySide(ctypes.Structure):
    """The members of ``cudaMemcpy3DParms`` for one side."""

    _fields_ = (
        ("array", ctypes.c_void_p),
        ("position", _size * 3),
        ("address", ctypes.c_void_p),
        ("pitch", _size),
        ("width", _size),
        ("height", _size),
    )


class Copy3D(ctypes.Structure):
    """``cudaMemcpy3DParms``."""

    _fields_ = (("source", CopySide), ("target", CopySide), ("extent", Extent), ("kind", _int))
