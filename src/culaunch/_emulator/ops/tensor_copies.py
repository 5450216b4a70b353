"""cp.async.bulk.tensor: boxes of a tensor between global and shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.fault import ILLEGAL_INSTRUCTION, Fault
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import load
from culaunch._emulator.memory.shared import named_rank
from culaunch._emulator.memory.tensor_boxes import box_elements, misuse
from culaunch._emulator.memory.tensor_map import MAP_BYTES, PACKED, TensorMap
from culaunch._emulator.ops.bulk_units import (
    REDUCTIONS,
    UNIT,
    each_unit,
    target_ranks,
    to_rank,
)
from culaunch._emulator.ops.mbarrier import complete_bytes
from culaunch._emulator.ops.tensor_box import Box
from culaunch._emulator.ptx.syntax import Address, Instruction, Operand, Vector

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.types import Lanes


def tensor_copy(decoder: Decoder, instruction: Instruction) -> Op:
    """Decode a copy of a box, which happens at once."""
    mods = instruction.mods
    mode = next((word for word in mods if word.startswith(("tile", "im2col"))), "tile")
    if mode == "im2col_no_offs::w":
        raise Unsupported(f"a copy in the mode {mode}")
    operands = list(instruction.operands)
    loads = "mbarrier::complete_tx::bytes" in mods
    tensor = operands[1 if loads else 0]
    if not isinstance(tensor, Vector):
        raise Unsupported
    descriptor = decoder.address(Address(tensor.items[0]))
    coordinates = [decoder.read(one, "s32") for one in decoder.vector(tensor.items[1])]
    inside = decoder.address(operands[0 if loads else 1])
    rest: list[Operand] = operands[2:]
    barrier = decoder.address(rest.pop(0)) if loads else None
    moved = decoder.vector(rest.pop(0)) if rest and isinstance(rest[0], Vector) else []
    offsets = [decoder.read(one, "u16") for one in moved]
    ranks = target_ranks(decoder, instruction, rest)
    pair = "cta_group::2" in mods
    named = [word for word in mods if word in REDUCTIONS]
    reduction = named[0] if mods[0] == "reduce" else None

    def run(group: Group) -> None:
        places = _each(group, descriptor(group))
        starts = [_each(group, read(group).astype(np.int32)) for read in coordinates]
        shifts = [_each(group, read(group)) for read in offsets]
        shared = _each(group, inside(group))
        barriers = None if barrier is None else _each(group, barrier(group))
        chosen = list(ranks(group))
        for lane in range(group.n):
            tensor_map = _read_map(group, lane, places[lane])
            start, shift = ([int(one[lane]) for one in each] for each in (starts, shifts))
            wrong = misuse(tensor_map, mode, start, shift)
            tensor_map, unit, wrong = _in_bytes(tensor_map, start, wrong, loads=loads)
            if loads and not wrong and start[0] * tensor_map.item_size % UNIT:
                # An H200 raises it for loads; stores were not tried.
                wrong = f"the first coordinate {start[0]} is not a multiple of 16 bytes"
            if wrong:
                raise Fault(ILLEGAL_INSTRUCTION, wrong, lane=group.lane_at(lane))
            at = box_elements(tensor_map, mode, start, shift)
            box = Box(group, lane, tensor_map, at, shared[lane : lane + 1], unit)
            if barriers is None:
                box.store(reduction)
                continue
            words = box.load()
            for rank, mask in chosen:
                if mask[lane]:
                    box.put(words, rank)
                    counts = _barrier_rank(group, lane, barriers, rank) if pair else rank
                    arrived = to_rank(barriers[lane : lane + 1], counts)
                    size = np.array([box.counted], np.uint64)
                    complete_bytes(group.narrow(np.array([lane])), arrived, "shared", size)

    return run


def _in_bytes(
    tensor: TensorMap, start: list[int], wrong: str | None, *, loads: bool
) -> tuple[TensorMap, int, str | None]:
    """Return a map of bytes if elements are packed, the bytes of a unit, and what is wrong.

    The first coordinate becomes one of bytes, too.
    """
    packed = PACKED.get(tensor.kind)
    if packed is None or wrong:
        return tensor, UNIT, wrong
    unit = UNIT * packed[0] // packed[1]
    if unit < UNIT and not loads:
        wrong = "elements with padding are not stored"
    elif unit < UNIT and start[0] % 128:
        wrong = f"the first coordinate {start[0]} of elements with padding is not a multiple of 128"
    start[0] = start[0] * packed[0] // 16
    return tensor.in_bytes(), unit, wrong


def _barrier_rank(group: Group, lane: int, barriers: Lanes, rank: int | None) -> int | None:
    """Return the block whose mbarrier counts the bytes that the block `rank` gets, of a pair."""
    if rank is None:
        return None
    # It is the block of the target's pair whose parity the block of the given mbarrier has.
    parity = int(named_rank(barriers[lane : lane + 1].astype(np.uint32))[0])
    if parity < 0:
        parity = int(_each(group, group.block_index)[lane])
    return rank & ~1 | parity & 1


def _each(group: Group, values: Lanes) -> Lanes:
    return np.broadcast_to(values, (group.n,))


def _read_map(group: Group, lane: int, address: int) -> TensorMap:
    count = MAP_BYTES // UNIT
    part = each_unit(group, np.full(count, lane))
    at = np.uint64(address) + np.arange(0, MAP_BYTES, UNIT, dtype=np.uint64)
    words = load(part, LOCATORS[""](part, at, UNIT, "read"), 8, 2)
    tensor_map = TensorMap.unpack(np.stack(words, axis=1).tobytes())
    if tensor_map is None:
        reason = f"the bytes at {int(address):#x} are not a tensor map of this driver"
        raise Fault(ILLEGAL_INSTRUCTION, reason, lane=group.lane_at(lane))
    return tensor_map
