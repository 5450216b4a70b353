"""Hold what an instruction's operation does against what its definition says of it.

The emulator drops registers that nothing needs, and keeps the old value where a guard is false, by
what `reads_and_writes` says. An instruction that it is wrong about loses results without a word.
One without effects runs in the lanes whose guard is false, too: it must not look at memory or at
other lanes.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from emulator_internals import Group, Instruction, definition

# Loaded before the watch begins, for it binds by itself: its registers are variables of C.
import culaunch._emulator.compiled.text  # noqa: F401
from culaunch._emulator.decode import decoder, liveness, operation
from culaunch._emulator.machine.spaces import LOCATORS, Locator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator_internals import Lanes, Op

    from culaunch._emulator.memory.bytes import Piece


class Registers(list[Any]):
    """A group's registers, which remember the slots that were read and written."""

    def __init__(self, values: list[Any]) -> None:
        super().__init__(values)
        self.read: set[int] = set()
        self.written: set[int] = set()

    def __getitem__(self, slot: Any) -> Any:
        self.read.add(slot)
        return super().__getitem__(slot)

    def __setitem__(self, slot: Any, value: Any) -> None:
        self.written.add(slot)
        super().__setitem__(slot, value)


@contextlib.contextmanager
def watched() -> Iterator[set[str]]:
    """Check every operation that is decoded meanwhile; give the opcodes that were executed."""
    bind, locators, whole_warps = operation.bind, dict(LOCATORS), Group.whole_warps
    seen: set[str] = set()
    touched: set[str] = set()

    def note_memory(locate: Locator) -> Locator:
        def noting(group: Group, address: Lanes, size: int, verb: str) -> list[Piece]:
            touched.add("memory")
            return locate(group, address, size, verb)

        return noting

    def note_lanes(group: Group) -> bool:
        touched.add("other lanes")
        assert whole_warps.fget is not None
        return bool(whole_warps.fget(group))

    def watch(of: decoder.Decoder, instruction: Instruction) -> Op:
        op = bind(of, instruction)
        bare = Instruction(
            instruction.name, instruction.mods, instruction.operands, instruction.line
        )
        reads, writes = liveness.reads_and_writes(bare, of.code.carry)
        effects = definition(instruction).effects

        def run(group: Group) -> None:
            registers = group.regs
            watching = Registers(registers)
            group.regs = watching
            touched.clear()
            op(group)
            assert effects or not touched, f"{instruction.opcode} has effects: {touched}"
            assert group.regs is watching, instruction.opcode
            registers[:] = list(watching)
            group.regs = registers
            seen.add(instruction.opcode)
            # A store to a parameter changes it in place, whether it reads it or not.
            assert watching.read <= {*reads, *writes}, f"{instruction.opcode} reads more"
            assert watching.written == set(writes), f"{instruction.opcode} writes others"

        return run

    # While it watches, it is a part of the emulator, which passes on exceptions of other code.
    watch.__code__ = watch.__code__.replace(co_filename=operation.__file__)
    operation.bind = watch
    LOCATORS.update({space: note_memory(locate) for space, locate in locators.items()})
    Group.whole_warps = property(note_lanes)  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        operation.bind = bind
        LOCATORS.update(locators)
        Group.whole_warps = whole_warps  # type: ignore[method-assign]
