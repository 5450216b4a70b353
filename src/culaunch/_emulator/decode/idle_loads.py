"""Loads whose value a thread may never use, although it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.decode.liveness import read_slots, reads_and_writes

if TYPE_CHECKING:
    from culaunch._emulator.ptx.syntax import Function, Instruction


def only_feeds_guarded_stores(function: Function, load: Instruction) -> bool:
    """Tell whether a loaded value can only reach memory, by stores that have a guard.

    If a tensor has fewer elements than a block has threads, Triton lets several threads load and
    compute the same element, and one of them store it. The others do not use what they have loaded.
    """
    carry = len(function.slots)
    slots = set(reads_and_writes(load, carry)[1])
    size = -1
    # In any order of the instructions: this may find a use too many, but overlooks none.
    while size != len(slots):
        size = len(slots)
        for one in function.instructions:
            reads, writes = reads_and_writes(one, carry)
            if one is load or slots.isdisjoint(reads):
                continue
            if one.guard is not None and not slots.isdisjoint(read_slots((one.guard,))):
                return False
            known = definition(one)
            if known.effects or (known.end is not None and known.ends(one)):
                is_store = one.name in ("st", "red") and one.guard is not None
                if not is_store or not slots.isdisjoint(read_slots(one.operands[:1])):
                    return False
                continue
            slots |= set(writes)
    return True
