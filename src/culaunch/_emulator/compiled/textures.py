"""Reads of textures in C, and the textures of a launch as the C code reads them."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.compiled.c_types import ABANDON
from culaunch._emulator.compiled.lane import Untraceable
from culaunch._emulator.memory.images import CudaArray
from culaunch._emulator.memory.texture import BORDER, NORMALIZED, SRGB, Texture
from culaunch._emulator.ops.texture_units import geometry_of
from culaunch._emulator.ptx.syntax import Pair, Register, Vector
from culaunch._emulator.types import is_type

if TYPE_CHECKING:
    from culaunch._emulator.compiled.operands import LaneDecoder, LaneGroup
    from culaunch._emulator.machine.chunk import LaunchView
    from culaunch._emulator.memory.images import LinearImage
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes


def read_texture(
    decoder: LaneDecoder,
    instruction: Instruction,
    sites: Any,  # noqa: ARG001
    group: LaneGroup,
) -> None:
    """Write ``tex`` of an image without layers, levels and offsets."""
    mods, (result, where, *rest) = instruction.mods, instruction.operands
    geometry = geometry_of(instruction)
    kind, coordinate = (word for word in mods if is_type(word))
    others = {"level", "grad"} & set(mods) or rest or kind == "f16" or kind == "f16x2"
    if others or geometry.has_layer or geometry.is_cube or isinstance(result, Pair):
        raise Untraceable("this form of a read")
    if not isinstance(where, Vector) or not isinstance(where.items[0], Register):
        raise Untraceable("a texture reference")
    unit, coordinates = where.items
    items = decoder.vector(coordinates)[: geometry.axes]
    puts = [decoder.write(target, kind) for target in decoder.vector(result)]
    handle = group.read(decoder.read(unit, "u64"), "u8")
    at = ", ".join(group.read(decoder.read(item, coordinate), "u4").name for item in items)
    how = f"{handle.name}, {int(coordinate == 'f32')}"
    call = f"read_texture_{geometry.axes}(c, {how}, at, words)"
    group.trace.do(f"u32 at[] = {{{at}}}, words[4];\nif (!{call}) {ABANDON}")
    for i, put in enumerate(puts):
        group.write(put, f"words[{i}]", "u4")


class TextureRecord(ctypes.Structure):
    """`Texture` of types.c."""

    _fields_ = (
        ("handle", ctypes.c_uint64),
        ("texels", ctypes.c_void_p),
        ("row", ctypes.c_uint64),
        ("slice", ctypes.c_uint64),
        ("size", ctypes.c_int64 * 3),
        ("channels", ctypes.c_uint32),
        ("width", ctypes.c_uint32),
        ("is_signed", ctypes.c_uint32),
        ("scale", ctypes.c_float),
        ("mode", ctypes.c_uint32 * 3),
        ("normalized", ctypes.c_uint32),
        ("linear", ctypes.c_uint32),
        ("halves", ctypes.c_uint32),
        ("border", ctypes.c_float * 4),
        ("border_words", ctypes.c_uint32 * 4),
    )


class LaunchTextures:
    """The textures whose handles are among the arguments of a launch.

    Attributes
    ----------
    records : ctypes.Array
        One for each texture that the C code can read.
    memory : list of (int, int)
        The starts and ends of the images in global memory, which the launch must not write.
    """

    def __init__(self, launch: LaunchView) -> None:
        self.memory: list[tuple[int, int]] = []
        self._texels: list[Lanes] = []  # the arrays that the records point to
        records = []
        params = launch.params.array[: launch.params.size // 8 * 8].view(np.uint64)
        for handle in sorted({int(one) for one in params} & set(launch.texture_units)):
            unit = launch.texture_units[handle]
            if not isinstance(unit, Texture) or len(unit.levels) != 1 or not unit.image.exists:
                continue
            texels = self._image(launch, unit)
            if texels is not None:
                texels = _as_read(unit, texels)
                self._texels.append(texels)
                records.append(_record(handle, unit, texels))
        self.records = (TextureRecord * len(records))(*records)

    def _image(self, launch: LaunchView, unit: Texture) -> Lanes | None:
        """Return the texels: ``(slices, rows, width, channels)``; None if they are no memory."""
        image: CudaArray | LinearImage = unit.image
        if isinstance(image, CudaArray):
            return image.data
        shape, memory = image.shape, launch.memory
        size = shape.width * shape.texel_size
        rows = shape.sizes[1]
        end = image.address + image.pitch * (rows - 1) + size
        index = int(np.searchsorted(np.array(memory.bases, np.uint64), image.address, "right")) - 1
        if index < 0 or end > memory.ends[index] or image.address % shape.item.dtype.itemsize:
            return None
        self.memory.append((image.address, end))
        octets: Any = (ctypes.c_uint8 * (end - image.address)).from_address(image.address)
        strides = (0, image.pitch, shape.texel_size, shape.item.dtype.itemsize)
        extents = (1, rows, shape.width, shape.channels)
        texels: Lanes = np.ndarray(extents, shape.item.dtype, octets, strides=strides)
        return texels


def _as_read(unit: Texture, texels: Lanes) -> Lanes:
    """Return texels that the C code reads: these, or the words of a read for each channel."""
    item, srgb = unit.image.shape.item, bool(unit.sampler.flags & SRGB)
    if item.dtype != np.float16 and not (srgb and item.scale == 255):
        return texels
    rows = texels.reshape(-1, texels.shape[3])
    words = item.words(rows, as_integer=unit.as_integer, srgb=srgb)[:, : texels.shape[3]]
    found: Lanes = np.ascontiguousarray(words).reshape(texels.shape)
    return found


def _record(handle: int, unit: Texture, texels: Any) -> TextureRecord:
    return TextureRecord(
        handle=handle,
        texels=texels.ctypes.data,
        row=texels.strides[1],
        slice=texels.strides[0],
        size=unit.image.shape.sizes,
        channels=texels.shape[3],
        width=texels.itemsize,
        is_signed=texels.dtype.kind == "i",
        scale=0 if unit.as_integer else unit.image.shape.item.scale,
        mode=tuple(map(unit.mode, range(3))),
        normalized=unit.sampler.flags & NORMALIZED,
        linear=bool(unit.sampler.filter) and not unit.as_integer,
        halves=unit.sampler.addresses[1] == BORDER,
        border=tuple(unit.border),
        border_words=tuple(map(int, unit.border_words)),
    )
