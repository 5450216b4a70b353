"""Copies of many bytes by one thread, sixteen at a time, also to other blocks of its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import load, store
from culaunch._emulator.memory.shared import name_rank
from culaunch._emulator.ops.atomics import run_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.memory.atomic import Update
    from culaunch._emulator.memory.how import How
    from culaunch._emulator.ptx.syntax import Instruction, Operand
    from culaunch._emulator.types import Lanes

UNIT = 16  # bytes: addresses and sizes of bulk copies are multiples of this
REDUCTIONS = frozenset(("add", "min", "max", "inc", "dec", "and", "or", "xor"))
# Which lanes copy to the shared memory of a block of the cluster; no rank is the block that the
# address names.
Ranks: TypeAlias = "Callable[[Group], Iterator[tuple[int | None, Lanes]]]"


def target_ranks(decoder: Decoder, instruction: Instruction, rest: list[Operand]) -> Ranks:
    """Return a function for the target blocks in the cluster of each lane's copy."""
    if "multicast::cluster" not in instruction.mods:
        return lambda group: iter([(None, np.ones(group.n, bool))])
    read = decoder.read(rest[0], "u16")

    def ranks(group: Group) -> Iterator[tuple[int | None, Lanes]]:
        masks = np.broadcast_to(read(group), (group.n,)).astype(np.int64)
        for rank in range(16):
            chosen = (masks >> rank & 1).astype(bool)
            if chosen.any():
                yield rank, chosen

    return ranks


def to_rank(address: Lanes, rank: int | None) -> Lanes:
    """Return the same place in the shared memory of another block of the cluster."""
    if rank is None:
        return address
    # The window of a generic address is above 32 bits.
    return name_rank(address.astype(np.uint32), rank)


def each_unit(group: Group, lane: Lanes) -> Group:
    """Return a group with a lane for each unit that a lane of `group` copies."""
    part = group.narrow(lane)
    # Lanes come several times: it must not pass for the whole chunk.
    part.repeat_blocks(np.broadcast_to(group.block_index, (group.n,))[lane])
    return part


def read_units(
    part: Group, space: str, address: Lanes, word: int, how: How, size: int = UNIT
) -> list[Lanes]:
    """Read a unit for each lane, as words of `word` bytes."""
    pieces = LOCATORS[space](part, address, size, "read")
    # A tile may have unwritten bytes; its receiver does not use them.
    for piece in pieces:
        if piece.shadow is not None and piece.shadow.records is not None:
            part.chunk.races.read(part, piece, piece.shadow.records, size, how)
    return load(part, [piece._replace(shadow=None) for piece in pieces], word, size // word)


def write_units(
    part: Group,
    space: str,
    address: Lanes,
    words: list[Lanes],
    reduction: Update | None,
    how: How,
) -> None:
    """Write a unit for each lane, or combine its words with those in memory."""
    word = words[0].dtype.itemsize
    size = word * len(words)
    if reduction is None:
        store(part, LOCATORS[space](part, address, size, "write"), word, words, how)
        return
    pieces = LOCATORS[space](part, address, size, "atomic access")
    for i, value in enumerate(words):
        shifted = [piece._replace(at=piece.at + i * word) for piece in pieces]
        run_atomic(part, shifted, [value], word, reduction, reduction)
