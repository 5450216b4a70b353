"""How matrices lie in shared memory for wgmma and tcgen05."""

from __future__ import annotations

import itertools

import numpy as np

ROWS = {"none": 16, "32B": 32, "64B": 64, "128B": 128}


def lay_out(bits: np.ndarray, swizzle: str, transposed: bool) -> tuple[bytes, int, int]:
    """Lay rows of elements out block by block: the bytes, and the two distances of a descriptor.

    A block is eight rows of 16 to 128 bytes; chunk c of row r is at ``c ^ f(r)``. A row
    has elements along the depth, or, if it is transposed, across it. The swizzle "atoms" has
    chunks of 32 bytes in blocks of four rows.
    """
    row, chunk, count = (128, 32, 4) if swizzle == "atoms" else (ROWS[swizzle], 16, 8)
    lines = np.ascontiguousarray(bits.T if transposed else bits)
    raw = lines.view("u1").reshape(lines.shape[0], -1)
    blocks = []
    for down, across in itertools.product(
        range(0, raw.shape[0], count), range(0, raw.shape[1], row)
    ):
        part = raw[down : down + count, across : across + row]
        block = np.zeros((count, row), "u1")
        block[:, : part.shape[1]] = part
        chunks = block.reshape(count, -1, chunk)
        moved = np.zeros_like(chunks)
        for r, c in itertools.product(range(count), range(row // chunk)):
            moved[r, c ^ (r * row // 128 % (row // chunk))] = chunks[r, c]
        blocks.append(moved.tobytes())
    across, down = -(-raw.shape[1] // row) * count * row, count * row
    # Distances down and across: which of the two a descriptor calls leading depends on the layout.
    if transposed:
        leading, stride = (across, down) if swizzle == "none" else (down, across)
    else:
        leading, stride = down, across
    return b"".join(blocks), leading, stride
