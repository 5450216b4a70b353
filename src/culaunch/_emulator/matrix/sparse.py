"""Sparse matrices A: half of each row is stored, and metadata names the places of its elements.

A row has chunks of four parts, and two parts of each are stored. Four bits of metadata name these
two, the lower ones first. A part is an element, a pair of elements of 4 bits, or half an element of
tf32. The places of the metadata are those of PTX ISA, "Sparse matrix storage".
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from culaunch._emulator.matrix.elements import WIDTHS

if TYPE_CHECKING:
    from culaunch._emulator.matrix.elements import Elements

_Array = npt.NDArray[Any]


def chunk_size(kind: str) -> int:
    """Return the elements of a chunk; those of 4 bits are stored in pairs."""
    return {32: 2, 4: 8}.get(WIDTHS[kind], 4)


def register_codes(kind: str, chunks: int, selector: int, metadata: _Array) -> _Array:
    """Return the four bits of each chunk: (warps, 16, chunks).

    `metadata` has the register of each lane: (warps, 32). The `selector` says which lanes of each
    four have metadata, if not all do.
    """
    lane, shift = _places(WIDTHS[kind] >= 16, chunks, selector)
    codes: _Array = metadata[:, lane] >> shift & np.uint32(15)
    return codes


@functools.cache
def _places(wide: bool, chunks: int, selector: int) -> tuple[_Array, _Array]:
    row, chunk = np.indices((16, chunks))
    lane, half = row % 8 * 4, row // 8
    if wide:
        lane, shift = lane + selector * (chunks // 4) + chunk // 4, 16 * half + chunk % 4 * 4
    else:
        lane, shift = lane + selector * 2 + half + chunk // 8 * 2, chunk % 8 * 4
    return lane, shift.astype(np.uint32)


def invalid(codes: _Array, size: int, nonzero: _Array | None = None) -> tuple[int, ...] | None:
    """Return the index of a chunk of `size` elements whose metadata has no meaning.

    If it is known which stored elements are `nonzero`, chunks of zeros may have any metadata:
    CUTLASS's compressors write 0 for them.
    """
    tf32 = (codes != 0b0100) & (codes != 0b1110)
    wrong = tf32 if size == 2 else codes & 3 == codes >> 2
    if nonzero is not None and wrong.any():
        wrong &= nonzero.reshape(*codes.shape, -1).any(axis=-1)
    return tuple(map(int, np.argwhere(wrong)[0])) if wrong.any() else None


def nonzero(stored: Elements, kind: str) -> _Array:
    """Tell which stored elements are not zero, of either sign."""
    sign = 0 if kind in ("s8", "u8") else 1 << (WIDTHS[kind] - 1)
    different: _Array = stored & ~stored.dtype.type(sign) != 0
    return different


def expand(stored: Elements, codes: _Array) -> Elements:
    """Return whole rows, of shape (..., m, k), from (..., m, k / 2) and (..., m, chunks)."""
    chunks = codes.shape[-1]
    count = stored.shape[-1] // chunks
    # Of tf32, the metadata names both halves of an element.
    places = [codes & 3, codes >> 2] if count > 1 else [(codes & 3) >> 1]
    parts = stored.reshape(*codes.shape, len(places), count // len(places))
    whole = np.zeros((*codes.shape, 2 * len(places), parts.shape[-1]), stored.dtype)
    index = np.broadcast_to(np.stack(places, axis=-1)[..., None], parts.shape)
    np.put_along_axis(whole, index.astype(np.int64), parts, axis=-2)
    return whole.reshape(*stored.shape[:-1], -1)
