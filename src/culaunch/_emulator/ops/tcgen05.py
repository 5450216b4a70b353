"""tcgen05: tensor memory, and the instructions that move data to and from it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator import numerics
from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import ALL_LANES, decodes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.fault import ILLEGAL_ADDRESS, ILLEGAL_INSTRUCTION, LAUNCH_FAILED, Fault
from culaunch._emulator.machine.rows import from_rows, to_rows
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.matrix.tcgen05 import SHAPES, fragment
from culaunch._emulator.memory.bytes import store
from culaunch._emulator.ops.bulk_units import target_ranks, to_rank
from culaunch._emulator.ops.matrix import require
from culaunch._emulator.ops.mbarrier import complete_arrival
from culaunch._emulator.ops.tensor_memory_copies import copy_in
from culaunch._emulator.ops.tensor_products import multiply
from culaunch._emulator.ptx.syntax import Immediate, Instruction, Operand

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.types import Lanes

_LOW = np.uint32(0xFFFF)


def _results(instruction: Instruction) -> int:
    mods = instruction.mods
    return (2 if "red" in mods else 1) if mods[0] == "ld" else 0


def _mask(instruction: Instruction) -> Operand | None:
    return ALL_LANES if "sync" in instruction.mods else None


@decodes(
    "tcgen05",
    results=_results,
    effects=True,
    waits=False,
    undefined=Flow.COMPUTES,
    warp_mask=_mask,
)
def _tcgen05(decoder: Decoder, instruction: Instruction) -> Op:
    build = _FORMS.get(instruction.mods[0])
    if build is None:
        raise Unsupported
    return build(decoder, instruction)


def _nothing(_decoder: Decoder, _instruction: Instruction) -> Op:
    # Everything is complete at once, which is one of the hardware's possible orders.
    return lambda _: None


def _warps(group: Group) -> tuple[Lanes, Lanes]:
    """Return the first index of each warp, and its block."""
    if not group.whole_warps:
        reason = "not all lanes of the warp execute a tcgen05 instruction for whole warps"
        raise Fault(LAUNCH_FAILED, reason, lane=group.lane_at(0))
    first = np.arange(0, group.n, 32)
    return first, np.broadcast_to(group.block_index, (group.n,))[first]


def _alloc(decoder: Decoder, instruction: Instruction) -> Op:
    place, number = (
        decoder.address(instruction.operands[0]),
        decoder.read(instruction.operands[1], "u32"),
    )

    def run(group: Group) -> None:
        first, block = _warps(group)
        where = np.broadcast_to(place(group), (group.n,))[first]
        counts = np.broadcast_to(number(group), (group.n,))[first]
        memory = group.chunk.tensor_memory
        columns = [
            memory.alloc(group.lane_at(int(i)), int(b), int(count))
            for i, b, count in zip(first, block, counts, strict=True)
        ]
        part = group.narrow(first)
        # The address is in shared memory, generic or not.
        inside = where.astype(np.uint32)
        pieces = LOCATORS["shared"](part, inside, 4, "write")
        store(part, pieces, 4, [np.array(columns, np.uint32)])
        # All threads of the warp execute the instruction: each may read what it wrote.
        if group.chunk.races is not None:
            group.chunk.races.order.meet(group.lanes, np.full(group.n, 0xFFFFFFFF, np.uint32))

    return run


def _dealloc(decoder: Decoder, instruction: Instruction) -> Op:
    address, number = (decoder.read(one, "u32") for one in instruction.operands)

    def run(group: Group) -> None:
        first, block = _warps(group)
        places, counts = (np.broadcast_to(x(group), (group.n,))[first] for x in (address, number))
        for i, b, at, count in zip(first, block, places, counts, strict=True):
            lane = group.lane_at(int(i))
            group.chunk.tensor_memory.free(lane, int(b), int(at), int(count))

    return run


def _relinquish(_decoder: Decoder, _instruction: Instruction) -> Op:
    return lambda group: group.chunk.tensor_memory.relinquish(_warps(group)[1])


def _move(decoder: Decoder, instruction: Instruction) -> Op:
    """Decode ld and st: each warp accesses its own 32 lanes.

    A GPU takes the lane of the address modulo 32, and adds the warp's first lane. DeepGEMM passes
    lane 0 in every warp. Therefore lanes below 32 count from the warp's first lane.
    """
    mods, operands = instruction.mods, list(instruction.operands)
    loads = mods[0] == "ld"
    shape = next((word for word in mods if word in SHAPES), None)
    count = next((int(w[1:]) for w in mods if w[0] == "x" and w[1:].isdigit()), 0)
    if shape is None or not count:
        raise Unsupported
    registers = decoder.vector(operands.pop(0 if loads else -1))
    require(registers, count * SHAPES[shape][0])
    put_extreme = decoder.write(operands.pop(0), "b32") if "red" in mods else None
    address, split = decoder.address(operands[0]), 0
    packed = "pack::16b" in mods or "unpack::16b" in mods
    if shape == "16x32bx2":
        if len(operands) != 2 or not isinstance(operands[1], Immediate):
            raise Unsupported
        # A packed column is two columns.
        split = operands[1].bits // 2 if packed else operands[1].bits
    lanes, columns = fragment(shape, count, split)
    height = 32 if shape == "32x32b" else 16
    if loads:
        puts = [decoder.write(one, "b32") for one in registers]
    else:
        reads = [decoder.read(one, "b32") for one in registers]

    def run(group: Group) -> None:
        index, block = _warps(group)
        at = to_rows(group, address(group))[:, 0].astype(np.int64)
        lane, column = at >> 16, at & 0xFFFF
        own = group.lanes[index] % group.chunk.width // 32 % 4
        lane = np.where(lane < 32, lane + 32 * own, lane)
        wrong = np.flatnonzero((lane // 32 != own) | (lane % height != 0))
        if wrong.shape[0]:
            warp = int(wrong[0])
            raise Fault(
                ILLEGAL_ADDRESS,
                f"tcgen05.{mods[0]} of shape {shape} at lane {int(lane[warp])}: warp "
                f"{int(own[warp])} of a warpgroup has lanes {32 * int(own[warp])} to "
                f"{32 * int(own[warp]) + 31}, at multiples of {height}",
                lane=group.lane_at(32 * warp),
            )
        memory = group.chunk.tensor_memory
        b, row = block[:, None, None], lane[:, None, None] + lanes
        places = [
            column[:, None, None] + (columns * 2 + half if packed else columns)
            for half in range(1 + packed)
        ]
        for place in places:
            memory.check(group, index, b, row, place)
            _require_ended(group, index, memory.written, b, place)
        if loads:
            values = [memory.words[b, row, place] for place in places]
            word = values[0] & _LOW | values[1] << np.uint32(16) if packed else values[0]
            for i, put in enumerate(puts):
                put(group, from_rows(group, np.ascontiguousarray(word[:, :, i])))
            if put_extreme is not None:
                put_extreme(group, from_rows(group, _extreme(word, mods)))
            return
        word = np.stack([to_rows(group, read(group)) for read in reads], axis=2)
        if not packed:
            memory.words[b, row, places[0]] = word
            return
        memory.words[b, row, places[0]] = word & _LOW
        memory.words[b, row, places[1]] = word >> np.uint32(16)

    return run


def _extreme(words: Lanes, mods: tuple[str, ...]) -> Lanes:
    """Return the smallest or the largest of each thread's words."""
    if "f32" in mods:
        choose = numerics.minimum if "min" in mods else numerics.maximum
        words = words & np.uint32(0x7FFFFFFF) if "abs" in mods else words
        one: Lanes = functools.reduce(
            lambda a, b: choose("f32", a, b, nan="NaN" in mods), np.moveaxis(words, 2, 0)
        )
        return one
    signed = words.view(np.int32) if "s32" in mods else words
    least: Lanes = signed.min(axis=2) if "min" in mods else signed.max(axis=2)
    return least.view(np.uint32)


def _require_ended(group: Group, index: Lanes, written: Lanes, block: Lanes, column: Lanes) -> None:
    """Report columns that an mma or a cp writes, and for whose mbarrier the warp has not waited."""
    races = group.chunk.races
    if races is None:
        return
    known = races.order.knows_copies(group.lanes[index])
    early = (written[block, column] > known[:, None, None]).any(axis=(1, 2))
    if early.any():
        raise Fault(
            LAUNCH_FAILED,
            "race: the warp accesses tensor memory that an asynchronous tcgen05 instruction "
            "writes, without having waited at the mbarrier of its tcgen05.commit",
            kind="race",
            lane=group.lane_at(int(index[early.argmax()])),
        )


def _commit(decoder: Decoder, instruction: Instruction) -> Op:
    operands = list(instruction.operands)
    address = decoder.address(operands[0])
    ranks = target_ranks(decoder, instruction, operands[1:])

    def run(group: Group) -> None:
        # A generic address of shared memory has the offset in its low bits. So does an offset.
        where = np.broadcast_to(address(group), (group.n,)).astype(np.uint32)
        for rank, chosen in ranks(group):
            index = np.flatnonzero(chosen)
            complete_arrival(group.narrow(index), to_rank(where[index], rank), "shared")

    return run


def _shift(decoder: Decoder, instruction: Instruction) -> Op:
    address = decoder.address(instruction.operands[0])
    pair = "cta_group::2" in instruction.mods

    def run(group: Group) -> None:
        memory = group.chunk.tensor_memory
        at = np.broadcast_to(address(group), (group.n,)).astype(np.int64)
        block = np.broadcast_to(group.block_index, (group.n,))
        index = np.arange(group.n)
        if (at >> 16 & 31).any():
            reason = "tcgen05.shift begins at a lane that is not a multiple of 32"
            raise Fault(ILLEGAL_INSTRUCTION, reason, lane=group.lane_at(0))
        lane = (at >> 16)[:, None, None] + np.arange(31)[None, :, None]
        column = (at & 0xFFFF)[:, None, None] + np.arange(8)
        for b in (block & ~1, block | 1) if pair else (block,):
            memory.check(group, index, b[:, None, None], lane, column)
            memory.words[b[:, None, None], lane + 1, column] = memory.words[
                b[:, None, None], lane, column
            ]

    return run


_FORMS = {
    "alloc": _alloc,
    "dealloc": _dealloc,
    "relinquish_alloc_permit": _relinquish,
    "ld": _move,
    "st": _move,
    "wait::ld": _nothing,
    "wait::st": _nothing,
    "fence::before_thread_sync": _nothing,
    "fence::after_thread_sync": _nothing,
    "commit": _commit,
    "shift": _shift,
    "cp": copy_in,
    "mma": multiply,
}
