"""tcgen05: the fields of instruction descriptors, and where elements are in tensor memory.

The tables are those of PTX ISA, "Instruction descriptor" and "Data path layout organization".
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from culaunch._emulator.matrix.elements import Elements

_Array = npt.NDArray[Any]
_NARROW = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}


class Kind(NamedTuple):
    """A ``.kind``: its element types and accumulators by their numbers, and K.

    `scales` is the number of scales along K, 0 if it has none. A sparse A stores K elements of 2 K.
    """

    elements: dict[int, str]
    sums: dict[int, str]
    depth: int
    scales: int = 0

    @property
    def chunk(self) -> int:
        """The elements of a chunk of a sparse A."""
        return {8: 2, 64: 8}.get(self.depth, 4)


KINDS = {
    "f16": Kind({0: "f16", 1: "bf16"}, {0: "f16", 1: "f32"}, 16),
    "tf32": Kind({2: "tf32"}, {1: "f32"}, 8),
    "f8f6f4": Kind(_NARROW, {0: "f16", 1: "f32"}, 32),
    "i8": Kind({0: "u8", 1: "s8"}, {2: "s32"}, 32),
    "mxf8f6f4": Kind(_NARROW, {1: "f32"}, 32, 1),
    "mxf4": Kind({1: "e2m1"}, {1: "f32"}, 64, 2),
    "mxf4nvf4": Kind({1: "e2m1"}, {1: "f32"}, 64, 2),
}


class Product(NamedTuple):
    """The fields of an instruction descriptor.

    Attributes
    ----------
    d, a, b : str or None
        The types; None for a number without a meaning.
    m, n : int
        The extents.
    signs, turned : tuple of bool
        Whether A and B are negated, and transposed.
    scale_ids : tuple of int
        The first byte of the scales of A and B in a word.
    depth : int
        The stored elements of a row of A.
    selector : int or None
        The column of the metadata behind its address; None if A is not sparse.
    """

    d: str | None
    a: str | None
    b: str | None
    m: int
    n: int
    signs: tuple[bool, bool]
    turned: tuple[bool, bool]
    satfinite: bool
    scale_ids: tuple[int, int]
    scale_type: str
    depth: int
    selector: int | None

    @classmethod
    def read(cls, word: int, kind: Kind) -> Product:
        """Take a descriptor apart."""

        def field(at: int, bits: int) -> int:
            return word >> at & ((1 << bits) - 1)

        scaled, packed = bool(kind.scales), kind.depth == 64
        selector = field(0, 2) if kind.depth <= 16 else 0
        return cls(
            "f32" if scaled else kind.sums.get(field(4, 2)),
            kind.elements.get(field(7, 3)),
            kind.elements.get(field(10, 2 if packed else 3)),
            field(24, 5) << 4,
            field(17, 6) << 3,
            (bool(field(13, 1)), bool(field(14, 1))),
            (bool(field(15, 1)), bool(field(16, 1))),
            not scaled and bool(field(3, 1)),
            (field(29, 2), field(4, 2)),
            "ue8m0" if field(23, 1) else "ue4m3",
            96 if packed and field(31, 1) else kind.depth,
            selector if field(2, 1) else None,
        )


class Places(NamedTuple):
    """Where D is: the block of the pair and the lane of each element, and its column.

    `rows` are the lanes of the rows of A.
    """

    block: _Array
    lane: _Array
    column: _Array
    rows: _Array

    def parts(self) -> list[tuple[slice, _Array]]:
        """Return the columns that are in the same lanes, and the lane of each row there."""
        starts = [*np.flatnonzero(np.diff(self.lane[0], prepend=-1)), self.lane.shape[1]]
        return [
            (slice(start, stop), self.lane[:, start]) for start, stop in itertools.pairwise(starts)
        ]

    def of(self, columns: slice) -> Places:
        """Return the places of some columns of D."""
        return self._replace(lane=self.lane[:, columns], column=self.column[:, columns])


@functools.cache
def places(m: int, n: int, *, pair: bool, ws: bool, sparse: bool) -> Places | None:
    """Return the places of a product; None if its shape does not exist."""
    share = m // 2 if pair else m
    rows = {(True, False): (64, 128), (False, True): (32, 64, 128)}.get((pair, ws), (64, 128))
    if share not in rows or not 8 <= n <= 256 or (n % 16 and m != 64):
        return None
    row, column = np.arange(m)[:, None], np.arange(n)[None, :]
    own = row % share
    if share == 64 and (sparse or not pair) and not ws:
        # Each warp has sixteen rows, in one half of its lanes.
        lane = own // 16 * 32 + own % 16
        return Places(row // share, lane + column * 0, column, lane[:, 0])
    # Fewer rows than lanes: further lanes have further columns.
    wide = n * share // 128
    return Places(row // share, own + column // wide * share, column % wide, own[:, 0])


def metadata_places(rows: _Array, kind: Kind) -> tuple[_Array, _Array, _Array]:
    """Return the lane, the column and the lowest bit of the metadata of each chunk.

    `rows` are the lanes of the rows of A. The layouts are those of CUTLASS (``tmem_e_frg``): the
    manual has only figures of them.
    """
    row, chunk = np.indices((rows.shape[0], 2 * kind.depth // kind.chunk))
    if kind.depth > 16:
        return rows[row], chunk // 8, chunk % 8 * 4
    # Sixteen lanes hold sixteen rows: two in a word, half of their chunks in the other eight lanes.
    lane = rows[row // 16 * 16] + row % 8 + chunk // 4 * 8
    return lane, row * 0, row // 8 % 2 * 16 + chunk % 4 * 4


def zero_columns(word: int, m: int, n: int) -> _Array:
    """Return which columns of B a descriptor replaces by zeros."""
    parts = []
    skip, use = (word >> 40 & 255) + 1, (word >> 48 & 255) + 1
    count = 128 // m
    for i in range(count):
        # Spans of zeros and of columns in turn. The fields' names fit the manual's examples; the
        # descriptions there are exchanged.
        number = np.arange(n // count) + (word >> 8 * i & 255)
        if word >> 32 + i & 1:
            parts.append(number % (skip + use) < skip)
        else:
            parts.append(number % (skip + use) >= use)
    mask: _Array = np.concatenate(parts) & bool(word >> 39 & 1)
    return mask


# All have one signature.
# ruff: noqa: ARG005

# For ld and st: the registers of a repetition, its columns, and the lane and the column of a
# register of thread t.
SHAPES: dict[str, tuple[int, int, Any, Any]] = {
    "32x32b": (1, 1, lambda t, r: t, lambda t, r: 0 * t),
    "16x64b": (1, 2, lambda t, r: t // 4 + t // 2 % 2 * 8, lambda t, r: t % 2),
    "16x128b": (2, 4, lambda t, r: t // 4 + r * 8, lambda t, r: t % 4),
    "16x256b": (4, 8, lambda t, r: t // 4 + r // 2 * 8, lambda t, r: t % 4 * 2 + r % 2),
    "16x32bx2": (1, 1, lambda t, r: t % 16, lambda t, r: t // 16),
}


@functools.cache
def fragment(shape: str, count: int, split: int) -> tuple[_Array, _Array]:
    """Return the lane and the column of each register of a warp's threads: (32, registers).

    `split` is the distance of the halves of ``.16x32bx2``.
    """
    size, columns, lane, column = SHAPES[shape]
    thread, register = np.arange(32)[:, None], np.arange(size * count)[None, :]
    part = register % size
    step = split if shape == "16x32bx2" else 1
    where = column(thread, part) * step + register // size * columns
    return lane(thread, part) + 0 * register, where


def padded(raw: Elements, width: int) -> Elements:
    """Take elements of 4 or 6 bits apart, 16 of them at each multiple of 16 bytes."""
    bits = np.unpackbits(raw.reshape(*raw.shape[:-1], -1, 16), axis=-1, bitorder="little")
    each = bits[..., : 16 * width].reshape(*bits.shape[:-1], 16, width)
    return np.packbits(each, axis=-1, bitorder="little").reshape(raw.shape)
