"""Textures that a kernel reads, on the driver in use, and the same reads in plain Python."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

import culaunch as cl
from culaunch._emulator.driver.texture_types import (
    ArrayDescriptor,
    ResourceDescriptor,
    TextureDescriptor,
)
from culaunch._launch.arguments.texture_memory import CopyDescriptor
from culaunch._launch.devices.driver import current_driver

# CUarray_format by NumPy's type. Then CUaddress_mode, and the flags of arrays and of textures.
FORMATS = {"u1": 1, "u2": 2, "u4": 3, "i1": 8, "i2": 9, "i4": 10, "f2": 16, "f4": 32}
WRAP, CLAMP, MIRROR, BORDER = range(4)
LAYERED, SURFACE, CUBEMAP, GATHER = 1, 2, 4, 8
AS_INTEGER, NORMALIZED, SRGB = 1, 2, 0x10
# By the geometry: the axes, then where they are among the four words of coordinates.
AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3}


class Sampling(NamedTuple):
    """How a texture is read."""

    mode: int = CLAMP
    linear: bool = False
    normalized: bool = False
    as_integer: bool = False
    srgb: bool = False
    border: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)

    @property
    def flags(self) -> int:
        return AS_INTEGER * self.as_integer + NORMALIZED * self.normalized + SRGB * self.srgb


class Image:
    """Texels ``(slices, rows, width, channels)`` as a CUDA array of the driver in use."""

    def __init__(self, texels: np.ndarray, *, depth: int, height: int, flags: int = 0) -> None:
        self.texels, self.driver = texels, current_driver()
        slices, rows, width, channels = texels.shape
        kind = FORMATS[texels.dtype.str[1:]]
        given = ArrayDescriptor(width, height, depth, kind, channels, flags)
        self.handle = self.driver.array_create(0, given)
        copy = CopyDescriptor(width=width * channels * texels.itemsize, height=rows, depth=slices)
        copy.source_type, copy.source_host = 1, texels.ctypes.data
        copy.source_pitch, copy.source_height = copy.width, rows
        copy.target_type, copy.target_array = 3, self.handle
        self._copy = copy
        self.driver.copy_3d(0, copy, 0)
        cl.synchronize()

    def numpy(self) -> np.ndarray:
        """Return a copy of the texels."""
        out, copy = np.empty_like(self.texels), self._copy
        back = CopyDescriptor(width=copy.width, height=copy.height, depth=copy.depth)
        back.source_type, back.source_array = 3, self.handle
        back.target_type, back.target_host = 1, out.ctypes.data
        back.target_pitch, back.target_height = copy.source_pitch, copy.source_height
        self.driver.copy_3d(0, back, 0)
        cl.synchronize()
        return out

    def resource(self) -> ResourceDescriptor:
        made = ResourceDescriptor(type=ResourceDescriptor.ARRAY)
        made.resource.handle = self.handle
        return made


def linear_resource(array: Any, texels: np.ndarray, pitch: int = 0) -> ResourceDescriptor:
    """Describe texels in global memory: a line, or with a pitch in bytes rows."""
    _, rows, width, channels = texels.shape
    made = ResourceDescriptor(type=ResourceDescriptor.PITCH_2D if pitch else 2)
    linear = made.resource.linear
    linear.address, linear.format = array.address, FORMATS[texels.dtype.str[1:]]
    linear.channels, linear.width = channels, width if pitch else texels.nbytes
    linear.height, linear.pitch = rows if pitch else 0, pitch
    return made


def texture_of(resource: ResourceDescriptor, sampling: Sampling) -> int:
    """Create a texture."""
    made = TextureDescriptor(filter=int(sampling.linear), flags=sampling.flags)
    made.addresses[:] = [sampling.mode] * 3
    made.border[:] = sampling.border
    return int(current_driver().texture_create(0, resource, made, None))


def kernel_of(read: str, results: int = 4) -> str:
    """Return PTX: each thread reads with its four words %c0 to %c3 and writes %o0 and the next."""
    stores = "".join(f"st.global.b32 [%to+{4 * i}], %o{i};\n" for i in range(results))
    return f"""
.version 8.1
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 at, .param .u64 unit, .param .u32 n) {{
.reg .b32 %c<4>, %o<8>, %i, %n; .reg .b64 %to, %from, %d, %unit; .reg .pred %p, %q;
mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %i, %i, %n, 0; mov.u32 %n, %tid.x;
add.u32 %i, %i, %n; ld.param.u32 %n, [n]; setp.ge.u32 %p, %i, %n; @%p exit;
ld.param.u64 %to, [out]; ld.param.u64 %from, [at]; ld.param.u64 %unit, [unit];
mul.wide.u32 %d, %i, 16; add.u64 %to, %to, %d; add.u64 %from, %from, %d;
ld.global.v4.b32 {{%c0, %c1, %c2, %c3}}, [%from];
{read}
{stores}ret;
}}
"""


def run(read: str, unit: int, words: np.ndarray, results: int = 4) -> np.ndarray:
    """Run a read for each row of four words; give four words for each."""
    count = len(words)
    at, out = cl.to_device(np.ascontiguousarray(words).view("u4")), cl.zeros((count, 4), "uint32")
    with cl.load(cl.Image(kernel_of(read, results).encode())) as module:
        module["k"].launch(out.address, at.address, unit, count, grid=-(-count // 64), block=64)
        cl.synchronize()
    return out.numpy()


def coordinates_of(geometry: str) -> str:
    """Return the operand of coordinates."""
    items = {"1d": "%c0", "2d": "%c0, %c1", "a1d": "%c0, %c1"}
    return "{" + items.get(geometry, "%c0, %c1, %c2, %c3") + "}"


# ---- the same in plain Python, one read at a time


def normal(value: float, dtype: np.dtype[Any]) -> float:
    """Return a channel as a float."""
    if dtype.kind == "f":
        return float(value)
    return max(float(value) / (2 ** (8 * dtype.itemsize - (dtype.kind == "i")) - 1), -1.0)


def texel(texels: np.ndarray, place: list[int], layer: int, sampling: Sampling) -> list[float]:
    """Return four channels of a texel, whose numbers the address mode makes valid."""
    slices, rows, width, channels = texels.shape
    sizes, index = (width, rows, slices), []
    mode = sampling.mode
    if not sampling.normalized and mode in (WRAP, MIRROR):
        mode = CLAMP
    for i, size in zip(place, sizes, strict=False):
        if mode == WRAP:
            i -= math.floor(i / size) * size
        elif mode == MIRROR:
            period = i - math.floor(i / (2 * size)) * 2 * size
            i = period if period < size else 2 * size - 1 - period
        elif mode == BORDER and not 0 <= i < size:
            return list(sampling.border)
        index.append(min(max(i, 0), size - 1))
    x, y, z = (*index, 0, 0)[:3]
    found = texels[layer if len(place) < 3 else z, y, x]
    if sampling.as_integer and texels.dtype.kind != "f":
        return [int(v) for v in found] + [0] * (4 - channels)
    values = [normal(v, texels.dtype) for v in found]
    if sampling.srgb:
        values[:3] = [
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values[:3]
        ]
    return values + [0.0] * (4 - channels)


def sample(texels: np.ndarray, place: list[float], layer: int, sampling: Sampling) -> list[float]:
    """Read a texture as the CUDA C++ Programming Guide describes it."""
    slices, rows, width, _ = texels.shape
    sizes = (width, rows, slices)
    points = [p * s if sampling.normalized else p for p, s in zip(place, sizes, strict=False)]
    if not sampling.linear:
        return texel(texels, [math.floor(p) for p in points], layer, sampling)
    low = [math.floor(p - 0.5) for p in points]
    part = [math.floor((p - 0.5 - i) * 256 + 0.5) / 256 for p, i in zip(points, low, strict=True)]
    total = [0.0] * 4
    for corner in itertools.product((0, 1), repeat=len(points)):
        weight = math.prod(p if c else 1 - p for p, c in zip(part, corner, strict=True))
        index = [i + c for i, c in zip(low, corner, strict=True)]
        values = texel(texels, index, layer, sampling)
        total = [t + weight * v for t, v in zip(total, values, strict=True)]
    if len(place) == 1 and slices == 1 and sampling.mode == BORDER:
        # An H200 reads a row of texels at y = 0, halfway between the row and the border.
        total = [(t + v) / 2 for t, v in zip(total, sampling.border, strict=True)]
    return total
