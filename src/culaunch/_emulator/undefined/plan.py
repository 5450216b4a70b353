"""The facts about an instruction that are known before it runs with undefined registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from culaunch._emulator.decode.decoder import Decoder
from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.decode.liveness import read_slots, reads_and_writes
from culaunch._emulator.decode.operation import decode
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.ptx.syntax import (
    Address,
    Instruction,
    Operand,
    Pair,
    Register,
    Vector,
)
from culaunch._emulator.types import Lanes, is_signed, lane_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._emulator.decode.decoder import Symbols
    from culaunch._emulator.machine.state import Code, Group
    from culaunch._emulator.machine.taint import Taints
    from culaunch._emulator.memory.undefined_bytes import Read
    from culaunch._emulator.undefined.context import Context

# (context, group, plan, the lanes whose guard is true or None for all) -> taints of the results
Rule: TypeAlias = "Callable[[Context, Group, Plan, Lanes | None], Taints]"


class Plan:
    """How undefined bits go through one instruction.

    Attributes
    ----------
    run : callable
        The instruction without its guard.
    reads, writes : collections of int
        Its slots, without the guard's.
    addresses : set of int
        The slots that are addresses of memory.
    flow : BitFlow
        How undefined bits of its operands go through it, by its record.
    rule : callable
        Returns the taints of the results, from the registers as they are before it runs.
    """

    def __init__(self, symbols: Symbols, code: Code, instruction: Instruction) -> None:
        self.code = code
        self.instruction = instruction
        self.decoder = Decoder(symbols, code)
        plain = Instruction(
            instruction.name, instruction.mods, instruction.operands, instruction.line
        )
        self.plain = plain
        # A second operation besides the scheduler's. Rules run it on copies of the group, without a
        # guard.
        self.run = decode(self.decoder, plain)
        reads, writes = reads_and_writes(plain, code.carry)
        self.reads = frozenset(reads)
        self.writes = tuple(dict.fromkeys(writes))
        self.guard, self.guard_slots = None, frozenset[int]()
        if instruction.guard is not None:
            self.guard = self.decoder.read(instruction.guard, "pred")
            self.guard_slots = frozenset(read_slots((instruction.guard,)))
        self.slots = {*self.reads, *self.writes, *self.guard_slots}
        self.addresses = set(_address_slots(instruction.operands))
        known = definition(instruction).undefined
        self.flow = Flow.IGNORES if known is None else known(instruction)
        self.rule: Rule  # `make_plan` finds it
        self.load_again: Callable[[Group], list[Lanes]] | None = None
        # ldmatrix spreads bytes over lanes. To load the map the same way says exactly which bits
        # are undefined, but only while the registers with the addresses are still there.
        if self.flow is Flow.LOADS_MATRIX and self.addresses.isdisjoint(self.writes):
            self.load_again = self._load_again

    def received(
        self, read: Read, index: Lanes, precise: list[Lanes] | None
    ) -> Iterator[tuple[int, Lanes]]:
        """Yield the slots that get the read values, with the undefined bits in each lane."""
        if precise is not None:
            for slot, bits in zip(self.writes, precise, strict=True):
                yield slot, bits[index]
        elif self.flow is Flow.LOADS:
            yield from self._loaded(read.bytes)
        else:
            # Of two results of a shuffle, the second one does not depend on the value.
            target = self.instruction.operands[0]
            pair = isinstance(target, Pair)
            for slot in self.writes[:1] if pair else self.writes:
                zero = self.code.zeros[slot]
                shape = (index.shape[0], *zero.shape[1:])
                yield slot, np.broadcast_to(~np.zeros(1, zero.dtype), shape)

    def run_on_map(self, group: Group) -> None:
        """Run the instruction once more, on the map of undefined bytes of shared memory."""
        # The map has the layout of the memory, so it can stand in for it. These accesses are not
        # checked, because they are not the program's.
        shared = group.chunk.shared
        data, shadow = shared.data, shared.shadow
        shared.data, shared.shadow = shadow.undefined.map, None
        try:
            self.run(group)
        finally:
            shared.data, shared.shadow = data, shadow

    def _loaded(self, each: Lanes) -> Iterator[tuple[int, Lanes]]:
        kind = self.decoder.type(self.instruction)
        targets = self.decoder.vector(self.instruction.operands[0])
        size = each.shape[1] // len(targets)
        for i, target in enumerate(targets):
            if not isinstance(target, Register):
                continue
            part = np.ascontiguousarray(each[:, i * size : (i + 1) * size])
            if size == 16:
                yield target.slot, part.view(np.uint64)
                continue
            words = part.view(f"u{size}")[:, 0]
            have = self.code.zeros[target.slot].dtype
            # A load into a wider register extends the sign: if that is undefined, so are all bits
            # above it, which sign-extending the mark does as well.
            if is_signed(kind):
                words = words.view(lane_dtype(kind))
            yield target.slot, words.astype(have)

    def _load_again(self, group: Group) -> list[Lanes]:
        """Run the load on the map of undefined bytes: the result has the undefined bits."""
        copy = group.with_registers(list(group.regs))
        self.run_on_map(copy)
        shapes = [(group.n, *self.code.zeros[slot].shape[1:]) for slot in self.writes]
        return [
            np.broadcast_to(copy.regs[slot], shape)
            for slot, shape in zip(self.writes, shapes, strict=True)
        ]


def _address_slots(operands: tuple[Operand, ...]) -> Iterator[int]:
    for operand in operands:
        if isinstance(operand, Vector):
            yield from _address_slots(operand.items)
        elif isinstance(operand, Address):
            base = operand.base
            # A parameter of a function is a register here, however it is written.
            if isinstance(base, Register) and base.type != "param":
                yield base.slot
