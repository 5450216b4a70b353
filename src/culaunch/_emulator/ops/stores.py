"""Stores to every state space, also those that an mbarrier counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import decodes
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import store
from culaunch._emulator.memory.how import COUNTED
from culaunch._emulator.ops.mbarrier import complete_bytes
from culaunch._emulator.ops.memory import access_flow, check_hints, how_of, param_slot, space_of
from culaunch._emulator.ptx.syntax import Register
from culaunch._emulator.types import size_of

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction, Operand
    from culaunch._emulator.types import Lanes

_ASYNC = frozenset(("async", "mbarrier::complete_tx::bytes"))


@decodes("st", results=0, effects=True, waits=False, undefined=access_flow, changes=0)
def _st(decoder: Decoder, instruction: Instruction) -> Op:
    if "async" in instruction.mods:
        return _st_async(decoder, instruction)
    check_hints(instruction)
    kind = decoder.type(instruction)
    place = instruction.operands[0]
    sources = decoder.vector(instruction.operands[1])
    slot = param_slot(place)
    if slot is not None:
        return _st_slot(decoder, place, sources, slot, kind)
    locate = LOCATORS[space_of(instruction)]
    address = decoder.address(place)
    size = size_of(kind)
    if kind == "b128":
        return _st_b128(decoder, instruction, sources)
    count, how = len(sources), how_of(instruction)
    readers = [decoder.read(source, kind) for source in sources]

    def run(group: Group) -> None:
        values = [read(group) for read in readers]
        store(group, locate(group, address(group), size * count, "write"), size, values, how)

    return run


def _st_async(decoder: Decoder, instruction: Instruction) -> Op:
    """Decode a store to a block of the cluster, whose mbarrier counts the bytes."""
    if len(instruction.operands) != 3:
        raise Unsupported("a store without an mbarrier")
    check_hints(instruction, _ASYNC)
    place, source, barrier = instruction.operands
    kind = decoder.type(instruction)
    readers = [decoder.read(one, kind) for one in decoder.vector(source)]
    address, arrived, size = decoder.address(place), decoder.address(barrier), size_of(kind)
    number = np.array([size * len(readers)], np.uint64)

    def run(group: Group) -> None:
        # The low half of a generic address of shared memory is the offset with its block.
        there, word = (at(group).astype(np.uint32) for at in (address, arrived))
        pieces = LOCATORS["shared"](group, there, int(number[0]), "write")
        store(group, pieces, size, [read(group) for read in readers], COUNTED)
        complete_bytes(group, word, "shared", number)

    return run


def _st_slot(
    decoder: Decoder, place: Any, sources: tuple[Operand, ...], slot: int, kind: str
) -> Op:
    size = size_of(kind)
    readers = [decoder.read(source, kind) for source in sources]
    offset = place.offset

    def run(group: Group) -> None:
        words = group.regs[slot]
        values = [read(group) for read in readers]
        rows = max(words.shape[0], *(value.shape[0] for value in values))
        # A copy: another group may share the old array.
        out: Lanes = np.empty((rows, words.shape[1]), np.uint8)
        out[...] = words
        for i, value in enumerate(values):
            at = offset + i * size
            out[:, at : at + size] = np.ascontiguousarray(value).view(np.uint8).reshape(-1, size)
        group.regs[slot] = out

    return run


def _st_b128(decoder: Decoder, instruction: Instruction, sources: tuple[Operand, ...]) -> Op:
    locate, address = LOCATORS[space_of(instruction)], decoder.address(instruction.operands[0])
    source = sources[0]
    if len(sources) > 1 or not isinstance(source, Register):
        raise Unsupported
    slot, how = source.slot, how_of(instruction)

    def run(group: Group) -> None:
        words = group.regs[slot]
        pieces = locate(group, address(group), 16, "write")
        store(group, pieces, 8, [words[:, 0], words[:, 1]], how)

    return run
