"""ldmatrix, stmatrix, movmatrix and mma."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator import matrix
from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import decodes, every_lane
from culaunch._emulator.decode.undefined_bits import MOVES, Flow
from culaunch._emulator.fault import MISALIGNED_ADDRESS, Fault
from culaunch._emulator.machine.rows import from_rows, to_rows
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.matrix.fragments import extents
from culaunch._emulator.matrix.sparse import chunk_size
from culaunch._emulator.memory.bytes import load, store
from culaunch._emulator.numerics.rounding import ROUNDINGS
from culaunch._emulator.ops.memory import space_of
from culaunch._emulator.ops.sparse import sparsity
from culaunch._emulator.types import unsigned

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder, Reader
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes

# Types of matrix elements; some of them cannot be in a register.
ELEMENT_TYPES = frozenset(
    ("f16", "bf16", "tf32", "f32", "f64", "s32", "s8", "u8", "s4", "u4", "b1", "e4m3", "e5m2")
)
Product = Callable[..., "list[Lanes]"]
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}


def shape_of(mods: tuple[str, ...]) -> str:
    """Return the modifier for the shape, such as ``"m16n8k16"``."""
    return next(word for word in mods if word[0] == "m" and word[1].isdigit())


def register_kind(element: str) -> str:
    """Return the type of the registers that hold elements of a type."""
    return "b64" if element == "f64" else "b32"


@decodes(
    "ldmatrix",
    results=1,
    effects=True,
    waits=False,
    undefined=Flow.LOADS_MATRIX,
    warp_mask=every_lane,
)
def _ldmatrix(decoder: Decoder, instruction: Instruction) -> Op:
    count, trans = _matrices(instruction)
    locate = LOCATORS[space_of(instruction)]
    puts = [decoder.write(t, "b32") for t in decoder.vector(instruction.operands[0])]
    address = decoder.address(instruction.operands[1])
    require(puts, count)
    half = np.uint32(16)

    def run(group: Group) -> None:
        where = _row_addresses(group, address(group), count, trans)
        for put, place in zip(puts, where, strict=True):
            if not trans:
                at = from_rows(group, place)
                put(group, load(group, locate(group, at, 4, "read"), 4, 1)[0])
                continue
            # When transposed, a register's two elements come from two rows, so each needs its own
            # load.
            low, high = (
                load(group, locate(group, from_rows(group, part), 2, "read"), 2, 1)[0]
                for part in place
            )
            put(group, low.astype(np.uint32) | high.astype(np.uint32) << half)

    return run


@decodes(
    "stmatrix",
    results=0,
    effects=True,
    waits=False,
    undefined=Flow.STORES_MATRIX,
    warp_mask=every_lane,
)
def _stmatrix(decoder: Decoder, instruction: Instruction) -> Op:
    count, trans = _matrices(instruction)
    locate = LOCATORS[space_of(instruction)]
    address = decoder.address(instruction.operands[0])
    readers = [decoder.read(t, "b32") for t in decoder.vector(instruction.operands[1])]
    require(readers, count)

    def run(group: Group) -> None:
        where = _row_addresses(group, address(group), count, trans)
        for read, place in zip(readers, where, strict=True):
            value = read(group)
            if not trans:
                at = from_rows(group, place)
                store(group, locate(group, at, 4, "write"), 4, [value])
                continue
            for shift, part in zip((0, 16), place, strict=True):
                at = from_rows(group, part)
                word = (value >> np.uint32(shift)).astype(np.uint16)
                store(group, locate(group, at, 2, "write"), 2, [word])

    return run


@decodes("movmatrix", results=1, effects=True, waits=False, undefined=MOVES, warp_mask=every_lane)
def _movmatrix(decoder: Decoder, instruction: Instruction) -> Op:
    put = decoder.write(instruction.operands[0], "b32")
    value = decoder.read(instruction.operands[1], "b32")
    return lambda g: put(g, from_rows(g, matrix.movmatrix(to_rows(g, value(g)))))


@decodes(
    "mma", results=1, effects=True, waits=False, undefined=Flow.MULTIPLIES, warp_mask=every_lane
)
def _mma(decoder: Decoder, instruction: Instruction) -> Op:
    mods = instruction.mods
    if any(word.startswith(("kind::", "block_scale")) for word in mods):
        raise Unsupported
    shape = shape_of(mods)
    # All four types are named, in this order (PTX ISA, "mma").
    d, a, b, c = [word for word in mods if word in ELEMENT_TYPES]
    first, second = [word for word in mods if word in ("row", "col")]
    types = (d, a, b, c)
    multiply = functools.partial(matrix.mma, layouts=(first, second))
    if not any(word.partition("::")[0] == "sp" for word in mods):
        return product(decoder, instruction, multiply, shape, types)
    read_codes = sparsity(decoder, instruction, 4, a, extents(shape)[2])
    return product(decoder, instruction, multiply, shape, types, read_codes)


def product(
    decoder: Decoder,
    instruction: Instruction,
    multiply: Product,
    shape: str,
    types: tuple[str, str, str, str],
    read_codes: Reader | None = None,
) -> Op:
    """Decode a product of matrices whose fragments are in registers; A may be sparse."""
    mods, operands = instruction.mods, instruction.operands
    multiply = functools.partial(
        multiply,
        shape,
        types,
        satfinite="satfinite" in mods,
        operation="xor" if "xor" in mods else "and",
        rounding=next((word for word in mods if word in ROUNDINGS), "rn"),
    )
    puts = [decoder.write(t, register_kind(types[0])) for t in decoder.vector(operands[0])]
    readers = [
        [decoder.read(item, register_kind(kind)) for item in decoder.vector(operand)]
        for operand, kind in zip(operands[1:4], types[1:], strict=True)
    ]
    # Find out now, on zeros, whether this product is known, and has the registers it needs.
    zeros = (
        [np.zeros((1, 32), unsigned(register_kind(kind)))] * len(part)
        for kind, part in zip(types[1:], readers, strict=True)
    )
    codes = {}
    if read_codes is not None:
        codes["codes"] = np.full((1, 16, extents(shape)[2] // chunk_size(types[1])), 0b0100)
    require(puts, len(multiply(*zeros, **codes)))

    def run(group: Group) -> None:
        # Whole warps, since every lane has a part of each matrix.
        fragments = [[to_rows(group, read(group)) for read in part] for part in readers]
        codes = {} if read_codes is None else {"codes": read_codes(group)}
        for put, rows in zip(puts, multiply(*fragments, **codes), strict=True):
            put(group, from_rows(group, rows))

    return run


def _matrices(instruction: Instruction) -> tuple[int, bool]:
    mods = instruction.mods
    if "m8n8" not in mods or "b16" not in mods:
        raise Unsupported
    return next(_COUNTS[word] for word in mods if word in _COUNTS), "trans" in mods


def require(registers: Sequence[object], count: int) -> None:
    """Refuse an instruction whose list of registers has not the length that it must have."""
    if len(registers) != count:
        raise Unsupported(f"{len(registers)} registers, not {count}")


def _row_addresses(group: Group, address: Lanes, count: int, trans: bool) -> Lanes:
    """Return the address of each lane's elements; rows must be aligned to their 16 bytes."""
    rows = to_rows(group, address)
    # Only the first 8 lanes for each matrix supply addresses. The values of the others are ignored.
    wrong = rows[:, : 8 * count] & rows.dtype.type(15)
    if wrong.any():
        warp, row = np.argwhere(wrong)[0]
        raise Fault(
            MISALIGNED_ADDRESS,
            f"the matrix row at {int(rows[warp, row]):#x} is not aligned to 16 bytes",
            lane=int(group.lanes[0]) // 32 * 32 + int(row),
        )
    return matrix.ldmatrix_addresses(rows, count, trans=trans)
