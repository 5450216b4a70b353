"""Matrix instructions on the registers of whole warps: mma, wmma, ldmatrix and their kin.

Conventions that every function here keeps:

- A register is an array of shape ``(warps, 32)``: uint32 as PTX packs it, uint64 for f64. A vector
  operand is a sequence of registers in the order of the instruction; results are lists.
- Nothing here accesses memory. Loads and stores are byte addresses or offsets, which the executor
  checks and accesses.
- Types and shapes are spelled as in PTX; ``types`` is ``(d, a, b, c)``, the instruction's order.
- No NumPy warning escapes.

Contents::

    mma(shape, types, a, b, c, *, layouts=("row", "col"), satfinite=False,
        operation="and", rounding="rn") -> [d...]
    ldmatrix_addresses(addresses, count, *, trans=False)  -> byte addresses; also for stmatrix
    movmatrix(a)                                          -> d
    wmma_access(shape, operand, kind, layout, stride)     -> (byte offsets, bytes of an item)
    wmma_pack(kind, items)    -> [register...]            after wmma.load
    wmma_unpack(kind, registers) -> items                 before wmma.store
    wmma_mma(shape, types, a, b, c, *, satfinite=False, operation="and", rounding="rn") -> [d...]

`product` documents the rounding of sums.
"""

from culaunch._emulator.matrix.ldmatrix import ldmatrix_addresses, movmatrix
from culaunch._emulator.matrix.mma import mma
from culaunch._emulator.matrix.wmma import wmma_access, wmma_mma, wmma_pack, wmma_unpack

__all__ = [
    "ldmatrix_addresses",
    "mma",
    "movmatrix",
    "wmma_access",
    "wmma_mma",
    "wmma_pack",
    "wmma_unpack",
]
