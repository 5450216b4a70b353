"""Run instructions of groups that have undefined registers, and mark their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.machine.taint import NONE, Taint
from culaunch._emulator.undefined.context import Context
from culaunch._emulator.undefined.rules import make_plan

if TYPE_CHECKING:
    from collections.abc import Collection

    from culaunch._emulator.decode.decoder import Symbols
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.state import Block, Code, Group, Op
    from culaunch._emulator.memory.undefined_bytes import Read
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes
    from culaunch._emulator.undefined.plan import Plan


class Undefined:
    """Follows the undefined values of a chunk.

    The scheduler passes on an instruction only if the group has undefined registers, or if the
    instruction has just read undefined bytes. A group without either runs at full speed.

    Attributes
    ----------
    reads : list of Read
        The undefined values that the running instruction has read; empty between instructions.
    plans : dict
        The plans of instructions, by their identity; they outlive the chunk.
    """

    def __init__(self, chunk: Chunk, symbols: Symbols, plans: dict[int, Plan]) -> None:
        self.symbols = symbols
        self.plans = plans
        self.context = Context(chunk)
        self.origins = self.context.origins
        self.reads: list[Read] = chunk.undefined_reads

    def step(self, group: Group, op: Op, instruction: Instruction) -> None:
        """Run an instruction and mark its results; raise Fault if it uses an undefined value."""
        plan = self._plan(group.code, instruction)
        tainted = group.undefined.keys()
        # Three cases, the most frequent first: the instruction does not touch undefined registers,
        # it only overwrites some, or it reads one.
        if tainted.isdisjoint(plan.slots):
            op(group)
        elif plan.guard is None and tainted.isdisjoint(plan.reads):
            # Defined values replace undefined ones in the results.
            op(group)
            self._put(group, dict.fromkeys(plan.writes))
        else:
            self._spread(group, op, plan)
        if self.reads:
            self.arrive(group, instruction)

    def arrive(self, group: Group, instruction: Instruction) -> None:
        """Mark the registers to which `instruction`, which has run, read undefined bytes."""
        reads = list(self.reads)
        self.reads.clear()
        plan = self._plan(group.code, instruction)
        if plan.load_again is not None:
            # Which lanes get which bytes is known only for shared memory, by its map.
            reads = [read for read in reads if read.space == "shared"]
        # A value that raced is completely undefined, because the bytes of the other write are
        # unknown.
        precise = None
        if plan.load_again is not None and not all(read.racing for read in reads):
            precise = plan.load_again(group)
        taints = dict(group.undefined)
        for read in reads:
            # The lanes of a group are in ascending order, and those that read are among them.
            index = np.searchsorted(group.lanes, read.lanes)
            own = self.origins.note(instruction, read)
            # Stored undefined bytes keep the origin of their value.
            origin = np.where(read.origin >= 0, read.origin, own)
            for slot, bits in plan.received(read, index, None if read.racing else precise):
                old = taints.get(slot)
                if old is None:
                    zero = group.code.zeros[slot]
                    old = Taint(
                        np.zeros((group.n, *zero.shape[1:]), zero.dtype),
                        np.zeros(group.n, np.int64),
                    )
                # Copies, since taints are never changed in place: groups that split share them.
                all_bits, origins = old.bits.copy(), old.origin.copy()
                all_bits[index] |= bits
                origins[index] = origin
                taints[slot] = Taint(all_bits, origins)
        self._put(group, taints)

    def check_end(self, group: Group, block: Block) -> None:
        """Report undefined values that decide the end of `block`; forget values that it writes."""
        # A block that ends only because the next one is jumped to has no instruction for its end.
        if len(block.ops) == len(block.instructions):
            return
        instruction = block.instructions[-1]
        plan = self._plan(group.code, instruction)
        self._check(group, plan.guard_slots, f"whether {instruction.opcode} is executed")
        active = None if plan.guard is None else np.broadcast_to(plan.guard(group), (group.n,))
        self._check(group, block.end.uses, f"{instruction.opcode}", active)
        if block.end.results:
            self._put(group, dict.fromkeys(block.end.results))

    def used_by_end(self, instruction: Instruction) -> None:
        """Report an undefined value that a function of the runtime has read."""
        # A function that is built in, such as printf, reads its arguments from memory; one value is
        # enough to report.
        read = self.reads[0]
        own = self.origins.note(instruction, read)
        origin = int(read.origin[0]) if read.origin[0] >= 0 else int(own[0])
        use = f"an argument of {' '.join(instruction.opcode.split('.'))}"
        raise self.origins.fault(use, origin, int(read.lanes[0]))

    def forget(self, group: Group, slots: Collection[int]) -> None:
        """Drop registers that no later instruction reads."""
        if not group.undefined.keys().isdisjoint(slots):
            self._put(group, dict.fromkeys(slots))

    def _plan(self, code: Code, instruction: Instruction) -> Plan:
        plan = self.plans.get(id(instruction))
        if plan is None:
            plan = self.plans[id(instruction)] = make_plan(self.symbols, code, instruction)
        return plan

    def _check(
        self, group: Group, slots: Collection[int], what: str, active: Lanes | None = None
    ) -> None:
        found = self.context.lanes(group, slots)
        if found is not None:
            self.context.use(group, found, what, active)

    def _spread(self, group: Group, op: Op, plan: Plan) -> None:
        opcode = plan.instruction.opcode
        # Where the guard is false, nothing that the instruction reads is used. Where the guard is
        # undefined itself, the lanes are in doubt: afterwards either the new or the old value may
        # be there.
        active = None if plan.guard is None else np.broadcast_to(plan.guard(group), (group.n,))
        doubt = self.context.lanes(group, plan.guard_slots)
        if doubt is not None and definition(plan.instruction).effects:
            self.context.use(group, doubt, f"whether {opcode} is executed", None)
        self._check(group, plan.addresses, f"the address of {opcode}", active)
        differ: list[Lanes | None] = [None for _ in plan.writes]
        if doubt is not None:
            # The registers that it would change if its guard is true. The instruction has no
            # effects here: instructions with effects were refused above.
            copy = group.with_registers(list(group.regs))
            plan.run(copy)
            differ = [group.regs[slot] ^ copy.regs[slot] for slot in plan.writes]
        # The rule sees the registers before the instruction changes them. It marks memory after the
        # instruction's own write, which marks the place as defined.
        results = plan.rule(self.context, group, plan, active)
        op(group)
        for do in self.context.after:
            do()
        self.context.after.clear()
        changes: dict[int, Taint | None] = {}
        for slot, difference in zip(plan.writes, differ, strict=True):
            new = results.get(slot)
            # Under a guard, each lane's result is the old or the new value.
            if active is not None:
                old = group.undefined.get(slot)
                new = _choose(group, slot, active, new, old, doubt, difference)
            changes[slot] = new
        self._put(group, changes)

    def _put(self, group: Group, changes: dict[int, Taint | None] | dict[int, Taint]) -> None:
        # A new dict: other groups may share the old one.
        taints = dict(group.undefined)
        for slot, taint in changes.items():
            if taint is not None and taint.bits.any():
                taints[slot] = taint
            else:
                taints.pop(slot, None)
        group.undefined = taints or NONE


def _choose(
    group: Group,
    slot: int,
    active: Lanes,
    new: Taint | None,
    old: Taint | None,
    doubt: tuple[Lanes, Lanes] | None,
    differ: Lanes | None,
) -> Taint:
    """Return the taint of a register that is written where a guard is true.

    Where the guard is undefined and makes a difference, the whole register is so too.
    """
    zero = group.code.zeros[slot]
    shape = (group.n, *zero.shape[1:])
    none = Taint(np.zeros(shape, zero.dtype), np.zeros(group.n, np.int64))
    new, old = new or none, old or none
    wide = active if len(shape) == 1 else active[:, None]
    bits = np.where(wide, new.bits, old.bits)
    origin = np.where(active & new.lanes, new.origin, old.origin)
    if doubt is not None and differ is not None:
        # If both outcomes are equal and defined, it does not matter which one occurs.
        either = (np.broadcast_to(differ, shape) | new.bits | old.bits) != 0
        lanes = doubt[0] & either.reshape(group.n, -1).any(axis=1)
        bits[lanes] = ~np.zeros(1, zero.dtype)
        origin = np.where(doubt[0], doubt[1], origin)
    return Taint(bits, origin)
