"""wmma: matrix fragments loaded, multiplied and stored by whole warps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator import matrix
from culaunch._emulator.decode.instruction import decodes, every_lane
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.machine.rows import from_rows, to_rows
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import load, store
from culaunch._emulator.ops.matrix import (
    ELEMENT_TYPES,
    product,
    register_kind,
    require,
    shape_of,
)
from culaunch._emulator.ops.memory import space_of

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.decode.undefined_bits import BitFlow
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes


def _results(instruction: Instruction) -> int:
    return 0 if instruction.mods[0] == "store" else 1


def _flow(instruction: Instruction) -> BitFlow:
    forms = {"load": Flow.LOADS_MATRIX, "store": Flow.STORES_MATRIX}
    return forms.get(instruction.mods[0], Flow.MULTIPLIES)


@decodes("wmma", results=_results, effects=True, waits=False, undefined=_flow, warp_mask=every_lane)
def _wmma(decoder: Decoder, instruction: Instruction) -> Op:
    form = instruction.mods[0]
    if form == "load":
        return _load(decoder, instruction)
    if form == "store":
        return _store(decoder, instruction)
    return _multiply(decoder, instruction)


class _Access:
    """Where a fragment's items are in memory."""

    def __init__(self, decoder: Decoder, instruction: Instruction, place: int, stride: int) -> None:
        mods, operands = instruction.mods, instruction.operands
        self.operand = mods[1]
        self.shape = shape_of(mods)
        self.layout = next(word for word in mods if word in ("row", "col"))
        self.kind = next(word for word in reversed(mods) if word in ELEMENT_TYPES)
        self.locate = LOCATORS[space_of(instruction)]
        self.address = decoder.address(operands[place])
        self.stride = decoder.read(operands[stride], "u32") if len(operands) > stride else None
        # The number of items does not depend on the stride. Compute it now, to find a wrong number
        # of registers before anything runs.
        pitch = _pitch(self.shape, self.operand, self.layout)
        offsets, size = matrix.wmma_access(self.shape, self.operand, self.kind, self.layout, pitch)
        items = np.zeros((1, 32, offsets.shape[-1]), f"u{size}")
        self.registers = len(matrix.wmma_pack(self.kind, items))

    def places(self, group: Group) -> tuple[list[Lanes], int]:
        """Return the address of each item in each lane, and the size of an item."""
        base = self.address(group)
        pitch: int | Lanes = _pitch(self.shape, self.operand, self.layout)
        if self.stride is not None:
            value = self.stride(group)
            # The stride is the same in all lanes of a warp.
            pitch = (
                int(value[0]) if value.shape[0] == 1 else to_rows(group, value)[:, 0].astype(int)
            )
        offsets, size = matrix.wmma_access(self.shape, self.operand, self.kind, self.layout, pitch)
        rows = to_rows(group, base)
        where = rows[:, :, None] + offsets.astype(rows.dtype)
        return [
            from_rows(group, np.ascontiguousarray(where[..., i])) for i in range(where.shape[-1])
        ], size


def _load(decoder: Decoder, instruction: Instruction) -> Op:
    access = _Access(decoder, instruction, 1, 2)
    kind = register_kind(access.kind)
    puts = [decoder.write(t, kind) for t in decoder.vector(instruction.operands[0])]
    require(puts, access.registers)

    def run(group: Group) -> None:
        places, size = access.places(group)
        # Item by item: a column of a row-major matrix is not in one piece.
        items = [
            to_rows(group, load(group, access.locate(group, at, size, "read"), size, 1)[0])
            for at in places
        ]
        registers = matrix.wmma_pack(access.kind, np.stack(items, axis=-1))
        for put, rows in zip(puts, registers, strict=True):
            put(group, from_rows(group, rows))

    return run


def _store(decoder: Decoder, instruction: Instruction) -> Op:
    access = _Access(decoder, instruction, 0, 2)
    kind = register_kind(access.kind)
    readers = [decoder.read(t, kind) for t in decoder.vector(instruction.operands[1])]
    require(readers, access.registers)

    def run(group: Group) -> None:
        places, size = access.places(group)
        registers = [to_rows(group, read(group)) for read in readers]
        items = matrix.wmma_unpack(access.kind, registers)
        for i, at in enumerate(places):
            value = from_rows(group, np.ascontiguousarray(items[..., i])).view(f"u{size}")
            store(group, access.locate(group, at, size, "write"), size, [value])

    return run


def _multiply(decoder: Decoder, instruction: Instruction) -> Op:
    mods = instruction.mods
    shape = shape_of(mods)
    named = [word for word in mods if word in ELEMENT_TYPES]
    # Products of f16 name only the types of D and C.
    d, a, b, c = named if len(named) == 4 else (named[0], "f16", "f16", named[1])
    return product(decoder, instruction, matrix.wmma_mma, shape, (d, a, b, c))


def _pitch(shape: str, operand: str, layout: str) -> int:
    """Return the stride of a matrix with contiguous rows (columns)."""
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    rows, columns = {"a": (m, k), "b": (k, n)}.get(operand, (m, n))
    return int(columns if layout == "row" else rows)
