"""The contents of a CUtensorMap of the emulated driver.

NVIDIA does not publish the layout of the 128 bytes; this one is the emulator's own. No program sees
the difference, because the driver and ``tensormap.replace`` encode every map.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

MAP_BYTES = 128
MAGIC = 0x50414D4C
# CU_TENSOR_MAP_DATA_TYPE_UINT8 and the next: bytes of an element; 1 if several are packed.
ITEM_SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 1, 1, 1)
# CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 16U4_ALIGN16B and 16U6_ALIGN16B: the bytes of 16 elements in
# global and in shared memory.
PACKED = {13: (8, 8), 14: (8, 16), 15: (12, 16)}
# Bits of a corner of the bounding box in im2col mode and of an offset, by the number of axes.
CORNER_BITS = {3: 16, 4: 8, 5: 5}
MODES = ("tile", "im2col", "im2col::w", "im2col::w::128")
# magic, type, rank, interleave, swizzle, fill, mode, address, extents, strides, box, steps,
# lower corner, upper corner
_FORMAT = struct.Struct("<I6B6xQ5I4x4Q5H5B3h3h")
# The names of tensormap.replace: the first byte of a field, and the bytes of one of its numbers.
FIELDS = {
    "elemtype": (4, 1), "rank": (5, 1), "interleave_layout": (6, 1), "swizzle_mode": (7, 1),
    "fill_mode": (8, 1), "global_address": (16, 8), "global_dim": (24, 4),
    "global_stride": (48, 8), "box_dim": (80, 2), "element_stride": (90, 1),
}  # fmt: skip


class TensorMap(NamedTuple):
    """A tensor in global memory and the box of it that one copy moves; the innermost axis first.

    Attributes
    ----------
    kind : int
        A ``CUtensorMapDataType``.
    interleave, swizzle, fill : int
        Numbers of ``CUtensorMapInterleave``, ``CUtensorMapSwizzle``, ``CUtensorMapFloatOOBfill``.
    address : int
    extents : tuple of int
        The tensor's, in elements.
    strides : tuple of int
        In bytes; the innermost one is the size of an element.
    box : tuple of int
        In elements; in im2col mode, the channels of a pixel and the pixels of a column.
    steps : tuple of int
        From one element of the box to the next, in elements of the tensor.
    lower, upper : tuple of int
        The corners of the bounding box in im2col mode, without channels and images. A lower one
        counts from zero, an upper one from the tensor's extent. Both are empty in tiled mode, and
        have only W in the modes ``im2col::w`` and ``im2col::w::128``.
    mode : str
        One of `MODES`.
    """

    kind: int
    interleave: int
    swizzle: int
    fill: int
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    mode: str = "tile"

    @property
    def item_size(self) -> int:
        """The bytes of an element; 1 if several are packed."""
        return ITEM_SIZES[self.kind]

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of the box in shared memory."""
        packed = PACKED.get(self.kind)
        return self.box[0] * self.item_size if packed is None else self.box[0] * packed[1] // 16

    def in_bytes(self) -> TensorMap:
        """Return a map of the bytes of packed elements in global memory."""
        size = PACKED[self.kind][0]
        extents, box = ((sizes[0] * size // 16, *sizes[1:]) for sizes in (self.extents, self.box))
        return self._replace(kind=0, extents=extents, box=box)

    @property
    def is_im2col(self) -> bool:
        """Whether the map describes columns of pixels."""
        return self.mode != "tile"

    @property
    def shape(self) -> tuple[int, ...]:
        """The elements that a copy in tiled mode moves along each axis."""
        return tuple(-(-size // step) for size, step in zip(self.box, self.steps, strict=True))

    @property
    def ends(self) -> tuple[int, ...]:
        """The first coordinates behind the bounding box in im2col mode."""
        sizes = zip(self.extents[1:-1], self.upper, strict=False)
        return tuple(size + corner for size, corner in sizes)

    def pack(self) -> bytes:
        """Return the bytes of the map."""
        rank = len(self.extents)

        def padded(values: tuple[int, ...], count: int) -> tuple[int, ...]:
            return (*values, *(0,) * (count - len(values)))

        return _FORMAT.pack(
            MAGIC, self.kind, rank, self.interleave, self.swizzle, self.fill,
            MODES.index(self.mode), self.address,
            # An extent of 2^32 is stored as one less.
            *padded(tuple(extent - 1 for extent in self.extents), 5),
            *padded(self.strides[1:], 4), *padded(self.box, 5), *padded(self.steps, 5),
            *padded(self.lower, 3), *padded(self.upper, 3),
        ).ljust(MAP_BYTES, b"\0")  # fmt: skip

    @classmethod
    def unpack(cls, data: bytes) -> TensorMap | None:
        """Read a map; None if these bytes are not a map, or a kernel has left out a part."""
        magic, kind, rank, interleave, swizzle, fill, mode, address, *rest = _FORMAT.unpack_from(
            data
        )
        if magic != MAGIC or not 1 <= rank <= 5 or kind >= len(ITEM_SIZES) or swizzle > 6:
            return None
        if mode and rank not in CORNER_BITS:
            return None
        extents = tuple(extent + 1 for extent in rest[:rank])
        strides = (ITEM_SIZES[kind], *rest[5 : 5 + rank - 1])
        box, steps = tuple(rest[9 : 9 + (2 if mode else rank)]), tuple(rest[14 : 14 + rank])
        if not all((*box, *steps)):
            return None
        given = (0, rank - 2, 1, 1)[mode]
        lower, upper = (tuple(rest[i : i + given]) for i in (19, 22))
        return cls(
            kind, interleave, swizzle, fill, address, extents, strides, box, steps, lower, upper,
            MODES[mode],
        )  # fmt: skip
