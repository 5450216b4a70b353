"""wgmma: where the elements of a warpgroup's matrices are, in registers and in shared memory.

Each warp computes 16 of the 64 rows. The layouts in shared memory are those of PTX ISA,
"Asynchronous Warpgroup Level Matrix Shared Memory Layout". A block has eight rows of 16, 32, 64 or
128 bytes, and a descriptor names two distances between blocks.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from culaunch._emulator.matrix.elements import WIDTHS, Elements, Registers, pack, unpack

_Array = npt.NDArray[Any]

# By the two uppermost bits of a descriptor: the bytes of a row, and the bits of an address that the
# swizzle flips. Other bits flip them, by so many places above. The last mode is tcgen05's own:
# its chunks have 32 bytes instead of 16.
_ROW_BYTES = np.array([16, 128, 64, 32, 128], np.int64)
_FLIPPED = np.array([0, 0x70, 0x30, 0x10, 0x60], np.int64)
_SHIFTS = np.array([3, 3, 3, 3, 2], np.int64)
# By the three uppermost bits of a descriptor of tcgen05: the mode above, or none.
_TCGEN05_MODES = np.array([0, 4, 1, -1, 2, -1, 3, -1], np.int64)


class Descriptors(NamedTuple):
    """The fields of the matrix descriptors of some warps, in bytes."""

    # The matrix's address in shared memory, and the two distances between blocks.
    start: _Array
    leading: _Array
    stride: _Array
    base: _Array
    """The base offset: nonzero where a swizzled block does not begin at a multiple of its size."""
    # The bytes of a row, the bits that the swizzle flips, and the distance of those that flip.
    row: _Array
    flipped: _Array
    shift: _Array
    absolute: _Array
    """Whether the leading distance is the address of what is behind the end of a row."""

    @classmethod
    def read(cls, words: _Array) -> Descriptors:
        """Take descriptors of 64 bits apart."""
        bits = words.astype(np.int64)
        return cls._of(bits, bits >> 62 & 3, np.zeros(bits.shape, bool))

    @classmethod
    def read_tcgen05(cls, words: _Array) -> Descriptors | None:
        """Take descriptors of tcgen05 apart; None if one has another version or swizzle."""
        bits = words.astype(np.int64)
        mode = _TCGEN05_MODES[bits >> 61 & 7]
        if (mode < 0).any() or ((bits >> 46 & 7) != 1).any():
            return None
        return cls._of(bits, mode, (bits >> 52 & 1).astype(bool))

    @classmethod
    def _of(cls, bits: _Array, mode: _Array, absolute: _Array) -> Descriptors:
        start, leading, stride = ((bits >> at & 0x3FFF) << 4 for at in (0, 16, 32))
        base, row, flipped = bits >> 49 & 7, _ROW_BYTES[mode], _FLIPPED[mode]
        return cls(start, leading, stride, base, row, flipped, _SHIFTS[mode], absolute)

    def problem(self, depth: int, *, transposed: bool) -> str | None:
        """Return why a matrix of `depth` bytes along the depth cannot lie so; None if it can."""
        if transposed:
            return None if not self.absolute.any() else "a leading address of a transposed matrix"
        if (self.shift == 2).any():
            return "a swizzle of 32-byte atoms, but the matrix is not transposed"
        if (self.absolute & ((self.flipped != 0x70) | (self.base != 0))).any():
            return "a leading address without a swizzle of 128 bytes, or with a base offset"
        long = (self.row > 16) & ~self.absolute & (self.start % self.row + depth > self.row)
        if long.any():
            return f"{depth} bytes along the depth, in rows of {int(self.row[long][0])} bytes"
        return None


def offsets(at: Descriptors, rows: _Array, depth: _Array, size: int, *, transposed: bool) -> _Array:
    """Return the address in shared memory of each element, of shape (warps, rows, depth).

    Parameters
    ----------
    at : Descriptors
        One for each warp.
    rows : numpy.ndarray
        Which rows of A, or columns of B, of shape (warps, rows) or (1, rows).
    depth : numpy.ndarray
        Which elements along the dimension that is summed over.
    size : int
        The bytes of an element.
    transposed : bool
        Whether elements of one column of A, or of one row of B, lie next to each other.
    """
    start, leading, stride, base, row, flipped, shift, absolute = (
        field[:, None, None] for field in at
    )
    r, k = rows[:, :, None], depth[None, None, :]
    plain = row == 16
    if transposed:
        # A row of a block has elements of one k. Chunks of 32 bytes change places in four rows.
        width, count = row // size, np.where(shift == 2, 4, 8)
        major = np.where(plain, stride, leading)
        minor = np.where(plain, leading, stride)
        place = r % width * size + r // width * major + k % count * row + k // count * minor
    else:
        inner = k * size
        # Without a swizzle a row has 16 bytes, and further ones are in another block.
        far = np.where(plain, inner // 16 * leading + inner % 16, inner)
        over = start % row + inner - row
        far = np.where(absolute & (over >= 0), leading - start + over, far)
        place = r % 8 * row + r // 8 * stride + far
    address: _Array = start + place
    swizzled: _Array = address ^ (address - (base << 7)) >> shift & flipped
    return swizzled


def accumulators(kind: str, registers: Registers) -> Elements:
    """Bring the registers of D into the shape (warps, 16, n)."""
    elements = unpack(kind, registers)
    n = elements.shape[-1] * 2
    rows, columns = _places(n)
    out = np.empty((elements.shape[0], 16, n), elements.dtype)
    out[:, rows, columns] = elements
    return out


def from_accumulators(kind: str, matrix: Elements) -> list[_Array]:
    """Bring the rows of a warp back into registers: the inverse of `accumulators`."""
    rows, columns = _places(matrix.shape[-1])
    return pack(kind, np.ascontiguousarray(matrix[:, rows, columns]))


@functools.cache
def _places(n: int) -> tuple[_Array, _Array]:
    """Return the row and the column of each element of each lane, both of shape (32, n / 2)."""
    lane, i = np.arange(32)[:, None], np.arange(n // 2)[None, :]
    return lane // 4 + 8 * (i >> 1 & 1), i // 4 * 8 + lane % 4 * 2 + (i & 1)


def element_bytes(kind: str) -> int:
    """Return the bytes of an element in memory; single bits are read by the byte."""
    return max(WIDTHS[kind] // 8, 1)
