"""The structures of cuda.h that describe arrays, textures and surfaces."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._base import array_descriptor
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.fault import INVALID_VALUE
from culaunch._emulator.memory.images import ArrayShape
from culaunch._emulator.memory.texture import Sampler
from culaunch._emulator.memory.texture_formats import FORMATS

_uint, _size = ctypes.c_uint, ctypes.c_size_t


class ArrayDescriptor(array_descriptor.ArrayDescriptor):
    """``CUDA_ARRAY3D_DESCRIPTOR`` of a program."""

    def shape(self) -> ArrayShape:
        """Return the shape, after a check."""
        return checked_shape(ArrayShape(*(getattr(self, name) for name, _ in self._fields_)))


class _Linear(ctypes.Structure):
    _fields_ = (
        ("address", ctypes.c_ulonglong),
        ("format", _uint),
        ("channels", _uint),
        ("width", _size),  # of linear memory: the size in bytes
        ("height", _size),
        ("pitch", _size),
    )


class _Resource(ctypes.Union):
    _fields_ = (
        ("handle", ctypes.c_void_p),
        ("linear", _Linear),
        ("reserved", ctypes.c_int * 32),
    )


class ResourceDescriptor(ctypes.Structure):
    """``CUDA_RESOURCE_DESC``."""

    ARRAY, MIPMAP, LINEAR, PITCH_2D = range(4)
    _fields_ = (("type", _uint), ("resource", _Resource), ("flags", _uint))


class TextureDescriptor(ctypes.Structure):
    """``CUDA_TEXTURE_DESC``."""

    _fields_ = (
        ("addresses", _uint * 3),
        ("filter", _uint),
        ("flags", _uint),
        ("max_anisotropy", _uint),
        ("mipmap_filter", _uint),
        ("bias", ctypes.c_float),
        ("least", ctypes.c_float),
        ("most", ctypes.c_float),
        ("border", ctypes.c_float * 4),
        ("reserved", ctypes.c_int * 12),
    )

    def sampler(self) -> Sampler:
        """Return the values, where arrays are tuples."""
        values: list[Any] = [getattr(self, name) for name in Sampler._fields]
        return Sampler._make(tuple(v) if isinstance(v, ctypes.Array) else v for v in values)


def checked_shape(shape: ArrayShape) -> ArrayShape:
    """Return a shape that textures can have; refuse any other."""
    reason = ""
    if shape.format not in FORMATS:
        reason = f"the array format {shape.format:#x} is not emulated"
    elif shape.channels not in (1, 2, 4):
        reason = f"an array has 1, 2 or 4 channels (got {shape.channels})"
    elif not shape.width:
        reason = "the width of an array must not be 0"
    elif shape.is_cube and (shape.width != shape.height or not shape.has_all_faces):
        reason = f"a cube has six square faces for each layer (got {shape[:3]})"
    elif shape.depth and not shape.height and not shape.has_layers:
        reason = "an array with a depth must have a height"
    if reason:
        raise Refusal(INVALID_VALUE, reason)
    return shape
