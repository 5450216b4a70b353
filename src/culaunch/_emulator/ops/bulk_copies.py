"""cp.async.bulk: copies of whole runs of bytes, and of boxes of a tensor, by one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.fault import MISALIGNED_ADDRESS, Fault
from culaunch._emulator.memory.how import BULK, COUNTED
from culaunch._emulator.ops.atomics import atomic_update
from culaunch._emulator.ops.bulk_units import (
    REDUCTIONS,
    UNIT,
    each_unit,
    read_units,
    target_ranks,
    to_rank,
    write_units,
)
from culaunch._emulator.ops.mbarrier import complete_bytes
from culaunch._emulator.ops.tensor_copies import tensor_copy
from culaunch._emulator.ptx.syntax import Address
from culaunch._emulator.types import size_of

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes

_SPACES = {"global": "global", "shared::cta": "shared", "shared::cluster": "shared"}


def bulk_copy(decoder: Decoder, instruction: Instruction) -> Op:
    """Decode a copy of cp.async.bulk or cp.reduce.async.bulk."""
    mods = instruction.mods
    if "prefetch" in mods:
        return lambda _: None
    if "tensor" in mods:
        return tensor_copy(decoder, instruction)
    if "cp_mask" in mods:
        raise Unsupported("a copy with a mask of bytes")
    spaces = [_SPACES[word] for word in mods if word in _SPACES]
    if len(spaces) != 2:
        raise Unsupported
    operands = list(instruction.operands)
    target, source = decoder.address(operands[0]), decoder.address(operands[1])
    size = decoder.read(operands[2], "u32")
    rest = operands[3:]
    barrier = decoder.address(rest.pop(0)) if rest and isinstance(rest[0], Address) else None
    if (barrier is None) != ("bulk_group" in mods):
        raise Unsupported
    ranks = target_ranks(decoder, instruction, rest)
    how = BULK if barrier is None else COUNTED
    reduction, word = None, 8
    if instruction.name == "cp" and mods[0] == "reduce":
        kind = decoder.type(instruction)
        name = next(one for one in mods if one in REDUCTIONS)
        reduction, word = atomic_update(name, kind), size_of(kind)

    def run(group: Group) -> None:
        amount = np.broadcast_to(size(group), (group.n,)).astype(np.int64)
        lane = np.repeat(np.arange(group.n), amount // UNIT)
        offset = UNIT * np.arange(lane.shape[0]) - np.repeat(
            np.cumsum(amount) - amount, amount // UNIT
        )
        origin, place = source(group), target(group)
        _check(group, origin, place, amount)
        whole = each_unit(group, lane)
        words = read_units(whole, spaces[1], _at(origin, lane, offset), word, how)
        there = _at(place, lane, offset)
        for rank, chosen in ranks(group):
            units = np.flatnonzero(chosen[lane])
            part = whole if units.shape[0] == whole.n else each_unit(group, lane[units])
            at, values = to_rank(there[units], rank), [value[units] for value in words]
            write_units(part, spaces[0], at, values, reduction, how)
            if barrier is not None:
                index = np.flatnonzero(chosen)
                arrived = to_rank(np.broadcast_to(barrier(group), (group.n,))[index], rank)
                size_now = amount[index].astype(np.uint64)
                complete_bytes(group.narrow(index), arrived, "shared", size_now)

    return run


def _at(address: Lanes, lane: Lanes, offset: Lanes) -> Lanes:
    each = address if address.shape[0] == 1 else address[lane]
    place: Lanes = each + offset.astype(address.dtype)
    return place


def _check(group: Group, origin: Lanes, place: Lanes, amount: Lanes) -> None:
    for what, numbers in (("source", origin), ("target", place), ("size", amount)):
        wrong = np.flatnonzero(np.broadcast_to(numbers % numbers.dtype.type(UNIT), (group.n,)))
        if wrong.shape[0]:
            value = int(np.broadcast_to(numbers, (group.n,))[wrong[0]])
            raise Fault(
                MISALIGNED_ADDRESS,
                f"the {what} of a bulk copy is not a multiple of {UNIT} bytes ({value:#x})",
                lane=group.lane_at(int(wrong[0])),
            )
