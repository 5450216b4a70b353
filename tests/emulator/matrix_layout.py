"""How matrices lie in shared memory for wgmma and tcgen05."""

from __future__ import annotations

import itertools

import numpy as np

ROWS = {"none": 16, "32B": 32, "64B": 64, "128B": 128}


def lay_out(bits: np.ndarray, swizzle: str, transposed: bool) -> tuple[bytes, int, int]:
    """Lay rows of elements out block by block: the bytes, and the two distances of a descriptor.

    A block is eight rows of 16 to 128 bytes; chunk c of row r is at ``c ^ f(r)``. A row
    has elements along the depth, or, if it is transposed, across it.
    """
    row = ROWS[swizzle]
    lines = np.ascontiguousarray(bits.T if transposed else bits)
    raw = lines.view("u1").reshape(lines.shape[0], -1)
    blocks = []
    for down, across in itertools.product(range(0, raw.shape[0], 8), range(0, raw.shape[1], row)):
        part = raw[down : down + 8, across : across + row]
        block = np.zeros((8, row), "u1")
        block[:, : part.shape[1]] = part
        chunks = block.reshape(8, -1, 16)
        moved = np.zeros_like(chunks)
        for r, c in itertools.product(range(8), range(row // 16)):
            moved[r, c ^ (r * row // 128 % (row // 16))] = chunks[r, c]
        blocks.append(moved.tobytes())
    across, down = -(-raw.shape[1] // row) * 8 * row, 8 * row
    # Distances down and across: which of the two a descriptor calls leading depends on the layout.
    if transposed:
        leading, stride = (across, down) if swizzle == "none" else (down, across)
    else:
        leading, stride = down, across
    return b"".join(blocks), leading, stride
