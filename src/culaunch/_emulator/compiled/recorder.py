"""Write an instruction in C: for one thread, in terms of the registers' names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from culaunch._emulator.compiled.c_types import ABANDON, c_type
from culaunch._emulator.compiled.lane import Untraceable
from culaunch._emulator.compiled.memory import ACCESSES, Sites
from culaunch._emulator.compiled.operands import LaneDecoder, LaneGroup
from culaunch._emulator.compiled.trace import statements
from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.decode.operation import bind
from culaunch._emulator.machine.ends import Conditional, Switch
from culaunch._emulator.numerics.formats import FORMATS, flush, saturate
from culaunch._emulator.outside import comes_from_outside
from culaunch._emulator.ptx.syntax import Label

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.compiled.trace import Trace
    from culaunch._emulator.kernel_code import KernelCode
    from culaunch._emulator.machine.state import Block
    from culaunch._emulator.ptx.syntax import Instruction, Operand

    Name: TypeAlias = Callable[[int], str]


def plain_name(slot: int) -> str:
    """Return the variable of a register, where there is one for the thread."""
    return f"r{slot}"


class Recorder:
    """The code of a kernel and the C of its instructions, which all its texts share.

    Attributes
    ----------
    slots : list of int
        The registers that C variables hold.
    kept : set of int
        The registers that a thread keeps while it stops.
    """

    def __init__(self, kernel: KernelCode) -> None:
        self.code = kernel.code(kernel.entry.name)
        self.decoder = LaneDecoder(kernel, self.code)
        self.sites = Sites()
        self.slots = [slot for slot, zero in enumerate(self.code.zeros) if zero.ndim == 1]
        self.kept: set[int] = set()
        self._starts: dict[int, int] = {}
        at = 0
        for block in self.code.blocks:
            self._starts[at] = block.index
            at += len(block.instructions)

    def type(self, slot: int) -> str:
        """Return the C type of a register."""
        return c_type(self.code.zeros[slot].dtype)

    def instruction(self, instruction: Instruction, name: Name = plain_name) -> str:
        """Return an instruction that does not end its block."""
        access = ACCESSES.get(instruction.name)
        if access is not None:
            run = lambda group: access(self.decoder, instruction, self.sites, group)  # noqa: E731
        else:
            known = definition(instruction)
            if instruction.name == "trap":
                return self.guarded(instruction, f"{ABANDON}\n", name)
            if known.effects and instruction.name != "brkpt":
                raise Untraceable(f"the instruction {instruction.opcode}")
            run = self._fused(instruction) or self._decoded(instruction)
        return self.guarded(instruction, self.record(instruction, run, name), name)

    def _decoded(self, instruction: Instruction) -> Callable[[LaneGroup], None]:
        try:
            return bind(self.decoder, instruction)  # type: ignore[return-value]
        except Unsupported as error:
            raise Untraceable(f"the instruction {instruction.opcode}: {error}") from None

    def _fused(self, instruction: Instruction) -> Callable[[LaneGroup], None] | None:
        """Return a multiply-add through C's function, which also rounds once."""
        mods = instruction.mods
        if instruction.name not in ("fma", "mad") or not {"f32", "f64"} & set(mods):
            return None
        kind = self.decoder.type(instruction)
        if not set(mods) <= {"rn", "ftz", "sat", kind}:
            return None
        fmt = FORMATS[kind]
        put = self.decoder.write(instruction.operands[0], kind)
        readers = [self.decoder.read(operand, kind) for operand in instruction.operands[1:]]

        def run(group: LaneGroup) -> None:
            values: list[Any] = [group.read(read, fmt.carrier) for read in readers]
            if "ftz" in mods:
                values = [flush(fmt, value) for value in values]
            names = ", ".join(value.name for value in values)
            result: Any = group.value(f"fma_{kind}({names})", fmt.carrier)
            if "ftz" in mods:
                result = flush(fmt, result)
            if "sat" in mods:
                result = saturate(fmt, result)
            group.write(put, result.name, fmt.carrier)

        return run

    def record(
        self,
        instruction: Instruction,
        run: Callable[[LaneGroup], None],
        name: Name = plain_name,
    ) -> str:
        """Return the statements that a function of a group of lanes records."""

        def record(trace: Trace) -> None:
            group = LaneGroup(trace, self.code, name)
            with np.errstate(all="ignore"):
                run(group)
            group.regs.flush()

        try:
            return f"{{\n{statements(record)}\n}}\n"
        except Untraceable as error:
            raise Untraceable(f"{instruction.opcode}: {error}") from None
        except Exception as error:
            if comes_from_outside(error):
                raise
            where = f"{instruction.opcode} ({type(error).__name__}: {error})"
            raise Untraceable(where) from error

    def guarded(self, instruction: Instruction, text: str, name: Name = plain_name) -> str:
        """Return a text under the guard of its instruction."""
        if instruction.guard is None:
            return text
        let = self.let("guard", instruction.guard, "pred", name)
        return f"{{ u8 guard;\n{let}\nif (guard) {{\n{text}}}\n}}\n"

    def let(self, variable: str, operand: Operand, kind: str, name: Name = plain_name) -> str:
        """Return the statements that give a C variable the value of an operand."""
        read = self.decoder.read(operand, kind)
        dtype = bool if kind == "pred" else "u4"

        def record(trace: Trace) -> None:
            group = LaneGroup(trace, self.code, name)
            trace.do(f"{variable} = {group.read(read, dtype).name};")

        return statements(record)

    def target(self, last: Instruction) -> int:
        """Return the block that a branch goes to."""
        label = last.operands[0]
        assert isinstance(label, Label)
        # Past the last instruction is where functions return.
        return self._starts.get(label.target, len(self.code.blocks) - 1)

    def switch(self, block: Block, last: Instruction, goto: Callable[[int], str]) -> str:
        """Return the branches of ``brx``."""
        end = block.end
        taken = end.taken if isinstance(end, Conditional) else end
        assert isinstance(taken, Switch)
        let = self.let("index", last.operands[0], "u32")
        cases = [f"case {i}: {goto(to)}" for i, to in enumerate(taken.targets[:-1])]
        return (
            f"{{ u32 index;\n{let}\nswitch (index) {{\n{''.join(cases)}"
            f"default: {goto(taken.targets[-1])}}}\n}}\n"
        )

    @staticmethod
    def split(block: Block) -> tuple[list[Instruction], Instruction | None]:
        """Return the instructions of a block, and the one that ends it."""
        body = block.instructions
        if body and definition(body[-1]).end is not None and definition(body[-1]).ends(body[-1]):
            return body[:-1], body[-1]
        return body, None

    @staticmethod
    def exit(block: Block) -> str:
        """Return how threads end in a block."""
        # A bare end may be an early return, which no barrier waits for.
        return "EXITED" if len(block.instructions) < 2 else "EXITED_LATE"
