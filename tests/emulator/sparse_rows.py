"""Rows with half of their elements zero: what is stored of them, and their metadata."""

from __future__ import annotations

import itertools

import numpy as np

#: The parts of a chunk that are stored, and the four bits that name them.
CODES = [(a, b, a | b << 2) for a, b in itertools.combinations(range(4), 2)]
HALVES = [(0, 0b0100), (1, 0b1110)]  # of tf32: a chunk has two elements, one of them is stored


def draw(
    rng: np.random.Generator, rows: int, depth: int, *, size: int = 4
) -> tuple[np.ndarray, np.ndarray]:
    """Return which elements are stored, (rows, depth), and the codes, (rows, chunks).

    A chunk has `size` elements: two of tf32, four, or four pairs.
    """
    chunks = depth // size
    mask, codes = np.zeros((rows, chunks, size), bool), np.zeros((rows, chunks), np.uint32)
    for row, chunk in itertools.product(range(rows), range(chunks)):
        if size == 2:
            place, code = HALVES[rng.integers(2)]
            mask[row, chunk, place] = True
        else:
            first, second, code = CODES[rng.integers(len(CODES))]
            for part in (first, second):
                mask[row, chunk, part * size // 4 : (part + 1) * size // 4] = True
        codes[row, chunk] = code
    return mask.reshape(rows, depth), codes


def warp_registers(codes: np.ndarray, *, wide: bool, selector: int) -> np.ndarray:
    """Put the codes of 16 rows into the registers of 32 lanes; the others have ones."""
    out = np.full(32, 0xFFFFFFFF, np.uint32)
    bits: dict[int, int] = {}
    for row, chunk in np.ndindex(codes.shape):
        group, lower = row % 8, row >= 8
        if wide:  # elements of 16 and 32 bits
            lane = 4 * group + (selector if codes.shape[1] == 4 else 2 * selector + chunk // 4)
            at = 16 * lower + 4 * (chunk % 4)
        else:
            lane, at = 4 * group + 2 * selector + lower + 2 * (chunk // 8), 4 * (chunk % 8)
        bits[lane] = bits.get(lane, 0) | int(codes[row, chunk]) << at
    for lane, value in bits.items():
        out[lane] = value
    return out
