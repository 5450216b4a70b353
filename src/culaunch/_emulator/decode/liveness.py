"""Which registers are needed where: dead ones are dropped when a group splits or merges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.ptx.syntax import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._emulator.machine.state import Code


def reads_and_writes(instruction: Instruction, carry: int) -> tuple[list[int], list[int]]:
    """Return the slots that an instruction reads and those it writes."""
    reads: list[int] = []
    writes: list[int] = []
    operands = instruction.operands
    known = definition(instruction)
    count = known.results(instruction)
    for i, operand in enumerate(operands):
        if i < count:
            _collect_results(operand, reads, writes)
        if i >= count or (i == 0 and known.updates(instruction)):
            _collect(operand, reads)
    if known.changes is not None and operands:
        place = operands[known.changes]
        base = place.base if isinstance(place, Address) else None
        if isinstance(base, Register) and base.type == "param":
            # The rest of the parameter stays: as the base of an address it is read already.
            writes.append(base.slot)
    if instruction.guard is not None:
        _collect(instruction.guard, reads)
    # add.cc, sub.cc and mad.cc also write the carry, which no operand shows.
    if "cc" in instruction.mods:
        writes.append(carry)
    if known.reads_carry:
        reads.append(carry)
    return reads, writes


def read_slots(operands: Iterable[Operand]) -> tuple[int, ...]:
    """Return the slots that reading `operands` reads."""
    reads: list[int] = []
    for operand in operands:
        _collect(operand, reads)
    return tuple(dict.fromkeys(reads))


def find_live(code: Code) -> None:
    """Fill in ``live_in`` and ``dead`` of every block.

    A register is live at a place if some path from there reads it before writing it. Sets of
    registers are integers with a bit for each slot. Functions have thousands of registers, and the
    sets of all blocks are joined repeatedly until they no longer grow.
    """
    uses, kills, outs = [], [], []
    results = _mask(range(len(code.function.returns)))
    for block in code.blocks:
        # In a block, registers that are read before they are written are live on entry (used).
        # Registers that the block writes for all lanes do not need their earlier values (killed).
        used = killed = 0
        for instruction in block.instructions:
            reads, writes = reads_and_writes(instruction, code.carry)
            # Reads come first: an instruction may read the register that it writes.
            used |= _mask(reads) & ~killed
            # The caller reads the function's results; no instruction here does.
            if definition(instruction).returns:
                used |= results & ~killed
            if instruction.guard is None:
                killed |= _mask(writes)
            else:
                # A guarded write keeps the old value in the other lanes.
                used |= _mask(writes) & ~killed
        uses.append(used)
        kills.append(killed)
        outs.append(0)
    live = list(uses)
    # Backwards, the direction of liveness: few rounds are enough.
    changed = True
    while changed:
        changed = False
        for i in range(len(code.blocks) - 1, -1, -1):
            out = 0
            for successor in code.blocks[i].end.successors:
                out |= live[successor]
            # The classic equation. Sets only grow, up to the function's registers, so the loop
            # ends.
            now = uses[i] | (out & ~kills[i])
            outs[i] = out
            if now != live[i]:
                live[i] = now
                changed = True
    for block, entering, used, killed, leaving in zip(
        code.blocks, live, uses, kills, outs, strict=True
    ):
        block.live_in = _slots(entering)
        # Registers that were live on entry or touched here, and that nothing after the block reads.
        block.dead = _slots((entering | used | killed) & ~leaving)


def _collect_results(operand: Operand, reads: list[int], writes: list[int]) -> None:
    if isinstance(operand, Register):
        writes.append(operand.slot)
    elif isinstance(operand, Vector):
        for item in operand.items:
            _collect_results(item, reads, writes)
    elif isinstance(operand, Pair):
        _collect_results(operand.first, reads, writes)
        _collect_results(operand.second, reads, writes)
    elif isinstance(operand, Address):
        # If a result goes to memory, its address is read, as for mbarrier.arrive.
        _collect(operand, reads)


def _collect(operand: Operand, reads: list[int]) -> None:
    if isinstance(operand, Register):
        reads.append(operand.slot)
    elif isinstance(operand, Immediate):
        return
    elif isinstance(operand, Address):
        _collect(operand.base, reads)
    elif isinstance(operand, Negated):
        _collect(operand.operand, reads)
    elif isinstance(operand, Vector):
        for item in operand.items:
            _collect(item, reads)
    elif isinstance(operand, Pair):
        _collect(operand.first, reads)
        _collect(operand.second, reads)


def _mask(slots: list[int] | range) -> int:
    mask = 0
    for slot in slots:
        mask |= 1 << slot
    return mask


def _slots(mask: int) -> tuple[int, ...]:
    found = []
    while mask:
        # From bit to bit, not from slot to slot: few of a function's registers live at one place.
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)
