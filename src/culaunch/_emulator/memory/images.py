"""Memory that textures read: CUDA arrays, and images in global memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from culaunch._emulator.memory.bytes import Bytes, load
from culaunch._emulator.memory.texture_formats import FORMATS, Format

if TYPE_CHECKING:
    from culaunch._emulator.types import Lanes

# The flags of CUDA_ARRAY3D_DESCRIPTOR.
LAYERED, SURFACE, CUBEMAP = 1, 2, 4


class ArrayShape(NamedTuple):
    """The members of ``CUDA_ARRAY3D_DESCRIPTOR``; a missing dimension is 0."""

    width: int
    height: int
    depth: int
    format: int
    channels: int
    flags: int = 0

    @property
    def item(self) -> Format:
        """The format of a channel."""
        return FORMATS[self.format]

    @property
    def texel_size(self) -> int:
        """The bytes of a texel."""
        return self.item.dtype.itemsize * self.channels

    @property
    def is_cube(self) -> bool:
        """Whether the slices are the faces of cubes."""
        return bool(self.flags & CUBEMAP)

    @property
    def has_all_faces(self) -> bool:
        """Whether the slices are one cube, or the cubes of several layers."""
        return self.depth == 6 or bool(self.flags & LAYERED and self.depth and not self.depth % 6)

    @property
    def has_layers(self) -> bool:
        """Whether the last dimension is layers or faces, which no filter blends."""
        return bool(self.flags & (LAYERED | CUBEMAP))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The extents of the three axes of coordinates."""
        return self.width, max(self.height, 1), 1 if self.has_layers else self.slices

    @property
    def slices(self) -> int:
        """The number of layers, faces or planes."""
        return max(self.depth, 1)

    def level(self, number: int) -> ArrayShape:
        """Return the shape of a level of a mipmapped array."""
        width, height, depth = (size and max(size >> number, 1) for size in self[:3])
        return self._replace(
            width=width, height=height, depth=self.depth if self.has_layers else depth
        )


class CudaArray:
    """A CUDA array: plain rows of texels, which no address of a kernel reaches.

    Attributes
    ----------
    data : numpy.ndarray
        ``(slices, rows, width, channels)``; empty after its destruction.
    bytes : Bytes
        The same memory, for checks of accesses.
    """

    def __init__(self, shape: ArrayShape) -> None:
        self.shape = shape
        width, rows, _ = shape.sizes
        self.pitch: int = width * shape.texel_size
        size = self.pitch * rows * shape.slices
        memory: Lanes = np.zeros(-(-size // 8) * 8, np.uint8)
        texels = memory[:size].view(shape.item.dtype)
        self.data: Lanes = texels.reshape(shape.slices, rows, width, shape.channels)
        self.bytes = Bytes(memory)

    @property
    def exists(self) -> bool:
        """Whether the array is not destroyed."""
        return self.data.size > 0

    def destroy(self) -> None:
        """Free the memory, and keep the object for textures over it."""
        self.data = np.zeros((0, 0, 0, 0), self.data.dtype)
        self.bytes = Bytes(np.zeros(0, np.uint8))

    @property
    def octets(self) -> Lanes:
        """The bytes, as one row."""
        return self.data.reshape(-1).view(np.uint8)

    def gather(self, group: Any, x: Lanes, y: Lanes, z: Lanes) -> Lanes:  # noqa: ARG002
        """Return one texel for each lane: ``(lanes, channels)``."""
        texels: Lanes = self.data[z, y, x]
        return texels


class LinearImage:
    """Texels in global memory, whose allocation must exist when a kernel reads them."""

    exists = True

    def __init__(self, shape: ArrayShape, address: int, pitch: int) -> None:
        self.shape = shape
        self.address = address
        self.pitch = pitch

    def gather(self, group: Any, x: Lanes, y: Lanes, z: Lanes) -> Lanes:  # noqa: ARG002
        """Return one texel for each lane: ``(lanes, channels)``."""
        shape = self.shape
        offset = y * self.pitch + x * shape.texel_size
        address = np.uint64(self.address) + offset.astype(np.uint64)
        pieces = group.chunk.globals.locate(group, address, shape.texel_size, "read")
        words = load(group, pieces, shape.item.dtype.itemsize, shape.channels)
        return np.stack(words, axis=1).view(shape.item.dtype)
