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
# swizzle flips by those three places above them.
_ROW_BYTES = np.array([16, 128, 64, 32], np.int64)
_FLIPPED = np.array([0, 0x70, 0x30, 0x10], np.int64)
# By the three uppermost bits of a descriptor of tcgen05: the mode above, or none. Mode 1 there is a
# swizzle of 32 bytes, which the emulator does not have.
_TCGEN05_MODES = np.array([0, -1, 1, -1, 2, -1, 3, -1], np.int64)


class Descriptors(NamedTuple):
    """The fields of the matrix descriptors of some warps, in bytes."""

    # The matrix's address in shared memory, and the two distances between blocks.
    start: _Array
    leading: _Array
    stride: _Array
    base: _Array
    """The base offset: nonzero where a swizzled block does not begin at a multiple of its size."""
    # The bytes of a row, and the bits that the swizzle flips.
    row: _Array
    flipped: _Array

    @classmethod
    def read(cls, words: _Array) -> Descriptors:
        """Take descriptors of 64 bits apart."""
        bits = words.astype(np.int64)
        return cls._of(bits, bits >> 62 & 3)

    @classmethod
    def read_tcgen05(cls, words: _Array) -> Descriptors | None:
        """Take descriptors of tcgen05 apart; None if one has another version or swizzle."""
        bits = words.astype(np.int64)
        mode = _TCGEN05_MODES[bits >> 61 & 7]
        # The version is 1, and the leading distance is not an address.
        if (mode < 0).any() or ((bits >> 46 & 7) != 1).any() or (bits >> 52 & 1).any():
            return None
        return cls._of(bits, mode)

    @classmethod
    def _of(cls, bits: _Array, mode: _Array) -> Descriptors:
        start, leading, stride = ((bits >> at & 0x3FFF) << 4 for at in (0, 16, 32))
        return cls(start, leading, stride, bits >> 49 & 7, _ROW_BYTES[mode], _FLIPPED[mode])


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
    start, leading, stride, _, row, flipped = (field[:, None, None] for field in at)
    r, k = rows[:, :, None], depth[None, None, :]
    plain = row == 16
    if transposed:
        # A row of a block has elements of one k.
        width = row // size
        major = np.where(plain, stride, leading)
        minor = np.where(plain, leading, stride)
        place = r % width * size + r // width * major + k % 8 * row + k // 8 * minor
    else:
        inner = k * size
        # Without a swizzle a row has 16 bytes, and further ones are in another block.
        far = np.where(plain, inner // 16 * leading + inner % 16, inner)
        place = r % 8 * row + r // 8 * stride + far
    address: _Array = start + place
    swizzled: _Array = address ^ address >> 3 & flipped
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
