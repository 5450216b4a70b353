"""A kernel as C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.compiled.c_types import ABANDON, c_type
from culaunch._emulator.compiled.lane import Untraceable
from culaunch._emulator.compiled.memory import ACCESSES, Sites
from culaunch._emulator.compiled.operands import LaneDecoder, LaneGroup
from culaunch._emulator.compiled.trace import statements
from culaunch._emulator.compiled.warp import Meeting, barrier
from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.decode.operation import bind
from culaunch._emulator.machine.ends import Conditional, Switch
from culaunch._emulator.numerics.formats import FORMATS, flush, saturate
from culaunch._emulator.outside import comes_from_outside
from culaunch._emulator.ptx.syntax import Label, Register

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.compiled.trace import Trace
    from culaunch._emulator.kernel_code import KernelCode
    from culaunch._emulator.machine.state import Block
    from culaunch._emulator.ptx.syntax import Instruction, Operand

__all__ = ["KernelText", "kernel_text"]

_RUNTIME = Path(__file__).with_name("runtime.c")
# A thread asks whether it should stop after this many rounds of its loops.
_POLL_MASK = 0xFFFFF
# A loop in which a thread may wait for another one lets others run after this many rounds.
_PATIENCE = 64


class KernelText:
    """The C of a kernel.

    Attributes
    ----------
    symbols : list of str
        The module's variables whose addresses it is given.
    """

    def __init__(self, kernel: KernelCode) -> None:
        self.code = kernel.code(kernel.entry.name)
        self.decoder = LaneDecoder(kernel, self.code)
        self.sites = Sites()
        self._starts: dict[int, int] = {}
        at = 0
        for block in self.code.blocks:
            self._starts[at] = block.index
            at += len(block.instructions)
        self._entries: dict[int, str] = {}
        self._resumed: set[int] = set()
        body = "".join(self._block(block) for block in self.code.blocks)
        self.symbols = self.decoder.symbols_used
        self.text = self._assemble(body)

    def _assemble(self, body: str) -> str:
        kept = sorted({s for b in self._resumed for s in self.code.blocks[b].live_in})
        zeros = self.code.zeros
        used = [slot for slot in range(len(zeros)) if zeros[slot].ndim == 1]
        fields = "".join(f"{c_type(zeros[s].dtype)} r{s}; " for s in kept if zeros[s].ndim == 1)
        registers = "\n".join(f"{c_type(zeros[s].dtype)} r{s} = 0;" for s in used)
        cases = "\n".join(
            f"case {pc}: goto {label};" for pc, label in sorted(self._entries.items())
        )
        header = _RUNTIME.read_text(encoding="utf-8")
        text = (
            f"#define STOPS {len(self._entries)}\n#define SITES {self.sites.count}\n"
            f"#define LOCAL {self.code.local_bytes}\n"
            f"#define REGISTERS {fields or 'char none;'}\n{header}\n"
        )
        if self._entries:
            return (
                f"{text}static int run_thread(Launch *c, Thread *t)\n{{\n"
                f"u32 turns = 0, waits = 0;\nSite *sites = c->sites;\n{registers}\n"
                f"(void)turns; (void)waits; (void)sites;\n"
                f"switch (t->pc) {{\n{cases}\n}}\n{body}}}\n"
            )
        # No thread ever stops on its way: all run in one loop.
        return (
            f"{text}static int run_threads(Launch *c)\n{{\n"
            f"u32 turns = 0;\nSite sites[SITES + 1] = {{0}};\n"
            f"for (Thread *t = c->all, *end = t + c->threads; t < end; ++t) {{\n{registers}\n"
            f"{body}next:;\n}}\n(void)sites;\nc->work += turns;\nreturn DONE;\n}}\n"
        )

    def _block(self, block: Block) -> str:
        parts = [f"B{block.index}:;\n"]
        body, last = block.instructions, None
        if body and definition(body[-1]).end is not None and definition(body[-1]).ends(body[-1]):
            body, last = body[:-1], body[-1]
        for i, instruction in enumerate(body):
            if i == 0 and definition(instruction).warp_mask(instruction) is not None:
                parts.append(self._meeting(block, instruction))
            else:
                parts.append(self._instruction(instruction))
        if last is not None:
            parts.append(self._guarded(last, self._end(block, last)))
        elif not body:
            parts.append("LEAVE(EXITED);\n")
        if block.index + 1 < len(self.code.blocks):
            parts.append(f"goto B{block.index + 1};\n")
        return "".join(parts)

    def _instruction(self, instruction: Instruction) -> str:
        access = ACCESSES.get(instruction.name)
        if access is not None:
            run = lambda group: access(self.decoder, instruction, self.sites, group)  # noqa: E731
        else:
            known = definition(instruction)
            if instruction.name == "trap":
                return self._guarded(instruction, f"{ABANDON}\n")
            if known.effects and instruction.name != "brkpt":
                raise Untraceable(f"the instruction {instruction.opcode}")
            run = self._fused(instruction) or self._decoded(instruction)
        return self._guarded(instruction, self._record(instruction, run))

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

    def _record(self, instruction: Instruction, run: Callable[[LaneGroup], None]) -> str:
        def record(trace: Trace) -> None:
            group = LaneGroup(trace, self.code)
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

    def _guarded(self, instruction: Instruction, text: str) -> str:
        if instruction.guard is None:
            return text
        return self._if(instruction.guard, text)

    def _if(self, guard: Operand, text: str) -> str:
        read = self.decoder.read(guard, "pred")

        def record(trace: Trace) -> None:
            group = LaneGroup(trace, self.code)
            trace.do(f"guard = {group.read(read, bool).name};")

        return f"{{ u8 guard;\n{statements(record)}\nif (guard) {{\n{text}}}\n}}\n"

    def _save(self, block: int) -> str:
        self._resumed.add(block)
        return "".join(f"t->r.r{s} = r{s};\n" for s in self._live(block))

    def _load(self, block: int) -> str:
        return "".join(f"r{s} = t->r.r{s};\n" for s in self._live(block))

    def _live(self, block: int) -> list[int]:
        zeros = self.code.zeros
        return [s for s in self.code.blocks[block].live_in if zeros[s].ndim == 1]

    def _entry(self, label: str) -> int:
        number = len(self._entries) + 1
        self._entries[number] = label
        return number

    def _stop(self, block: int, state: str) -> str:
        """Save the inputs of `block`, and stop until the runtime lets the thread continue there."""
        number = len(self._entries) + 1
        pc = self._entry(f"R{number}")
        return (
            f"{self._save(block)}t->pc = {pc};\nLEAVE({state});\nR{number}:;\n{self._load(block)}"
        )

    def _meeting(self, block: Block, instruction: Instruction) -> str:
        meeting = Meeting(self.decoder, instruction)
        before = self._record(instruction, meeting.before)
        after = self._record(instruction, meeting.after)
        text = f"{before}{self._stop(block.index, 'AT_WARP')}{after}"
        return self._guarded(instruction, text)

    def _goto(self, block: Block, target: int) -> str:
        if target > block.index:
            return f"goto B{target};\n"
        if not block.waits:
            return f"if (!(++turns & {_POLL_MASK:#x}) && poll(c)) {ABANDON}\ngoto B{target};\n"
        return (
            f"if (++waits >= {_PATIENCE}) {{\n{self._stop(target, 'YIELDED')}}}\ngoto B{target};\n"
        )

    def _end(self, block: Block, last: Instruction) -> str:
        name, end = last.name, block.end
        if name == "bra":
            label = last.operands[0]
            assert isinstance(label, Label)
            # Past the last instruction is where functions return.
            return self._goto(block, self._starts.get(label.target, len(self.code.blocks) - 1))
        if name in ("ret", "exit"):
            # A bare one may be an early return, which no barrier waits for.
            return f"LEAVE({'EXITED' if len(block.instructions) < 2 else 'EXITED_LATE'});\n"
        if name == "brx":
            taken = end.taken if isinstance(end, Conditional) else end
            assert isinstance(taken, Switch)
            return self._switch(block, last, taken)
        if name in ("bar", "barrier"):
            return self._barrier(block, last)
        # A call: of the runtime (printf, assert), or of a slow path that was worth no inlining. It
        # is reached rarely, if ever.
        return f"{ABANDON}\n"

    def _switch(self, block: Block, last: Instruction, switch: Switch) -> str:
        read = self.decoder.read(last.operands[0], "u32")

        def record(trace: Trace) -> None:
            group = LaneGroup(trace, self.code)
            trace.do(f"index = {group.read(read, 'u4').name};")

        cases = [f"case {i}: {self._goto(block, to)}" for i, to in enumerate(switch.targets[:-1])]
        return (
            f"{{ u32 index;\n{statements(record)}\nswitch (index) {{\n{''.join(cases)}"
            f"default: {self._goto(block, switch.targets[-1])}}}\n}}\n"
        )

    def _barrier(self, block: Block, last: Instruction) -> str:
        result: list[Operand | None] = []

        def before(group: LaneGroup) -> None:
            result[:] = [barrier(self.decoder, last, group, block.index)]

        def after(group: LaneGroup) -> None:
            target = result[0]
            if isinstance(target, Register):
                kind = "u32" if "popc" in last.mods else "pred"
                dtype = "u4" if kind == "u32" else bool
                group.write(self.decoder.write(target, kind), "t->y", dtype)

        text = self._record(last, before)
        text += self._stop(block.index + 1, "AT_BARRIER") + self._record(last, after)
        return f"{text}goto B{block.index + 1};\n"


def kernel_text(kernel: KernelCode) -> KernelText:
    """Return the C of a kernel; raise Untraceable if the compiled engine does not support it."""
    try:
        return KernelText(kernel)
    except Untraceable:
        raise
    except Exception as error:
        if comes_from_outside(error):
            raise
        # Over which form a decoder stumbles is not known; the other engine says it.
        raise Untraceable(f"{type(error).__name__}: {error}") from error
