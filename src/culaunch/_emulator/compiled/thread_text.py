"""A kernel as C for threads that run one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.compiled.c_types import ABANDON
from culaunch._emulator.compiled.warp import Meeting, barrier
from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.ptx.syntax import Register

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._emulator.compiled.operands import LaneGroup
    from culaunch._emulator.compiled.recorder import Recorder
    from culaunch._emulator.machine.state import Block
    from culaunch._emulator.ptx.syntax import Instruction, Operand

# A thread asks whether it should stop after this many rounds of its loops.
POLL_MASK = 0xFFFFF
# A loop in which a thread may wait for another one lets others run after this many rounds.
_PATIENCE = 64


class ThreadText:
    """The C of a kernel for one thread, which stops where threads meet.

    Attributes
    ----------
    stops : bool
        Whether a thread ever stops on its way.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._entries = 0
        self._joins: list[str] = []
        self.stops = False
        self._body = "".join(self._block(block) for block in recorder.code.blocks)
        self._sites = recorder.sites.count

    def text(self) -> str:
        """Return the function that runs a thread, or threads."""
        recorder = self._recorder
        registers = "\n".join(f"{recorder.type(s)} r{s} = 0;" for s in recorder.slots)
        cases = "\n".join(f"case {pc}: goto R{pc};" for pc in range(1, self._entries + 1))
        body = f"{registers}\nswitch (t->pc) {{\n{cases}\n}}\n{self._body}{''.join(self._joins)}"
        if self.stops:
            return (
                "static int run_thread(Launch *c, Thread *t)\n{\n"
                "u32 turns = 0, waits = 0;\nSite *sites = c->sites;\n"
                f"(void)turns; (void)waits; (void)sites;\n{body}}}\n"
            )
        # All run in one loop.
        return (
            "static int run_threads(Launch *c, Thread *t, Thread *end)\n{\n"
            f"u32 turns = 0;\nSite sites[{self._sites + 1}] = {{0}};\n"
            f"for (; t < end; ++t) {{\nCURRENT(t);\n{body}next:;\nt->pc = 0;\n}}\n"
            "(void)sites;\nc->work += turns;\nreturn DONE;\n}\n"
        )

    def join_at_end(self, block: Block, live: Iterable[int]) -> int:
        """Let threads start at the end of a block; return their entry."""
        last = block.instructions[-1]
        # A copy of the end keeps the loops of the text free of second entries.
        text = self._recorder.guarded(last, self._end(block, last))
        return self._join(live, f"{text}goto B{block.index + 1};\n")

    def join_at_start(self, block: Block) -> int:
        """Let threads start at a block; return their entry."""
        return self._join(block.live_in, f"goto B{block.index};\n")

    def _join(self, live: Iterable[int], text: str) -> int:
        pc = self._entry()
        self._joins.append(f"R{pc}:;\n{self._load(live)}{text}")
        return pc

    def _block(self, block: Block) -> str:
        parts = [f"B{block.index}:;\n"]
        body, last = self._recorder.split(block)
        for i, instruction in enumerate(body):
            if i == 0 and definition(instruction).warp_mask(instruction) is not None:
                parts.append(self._meeting(block, instruction))
            else:
                parts.append(self._recorder.instruction(instruction))
        if last is not None:
            parts.append(self._recorder.guarded(last, self._end(block, last)))
        elif not body:
            parts.append("LEAVE(EXITED);\n")
        if block.index + 1 < len(self._recorder.code.blocks):
            parts.append(f"goto B{block.index + 1};\n")
        return "".join(parts)

    def _entry(self) -> int:
        self._entries += 1
        return self._entries

    def _load(self, slots: Iterable[int]) -> str:
        kept = [slot for slot in slots if slot in self._recorder.slots]
        self._recorder.kept.update(kept)
        return "".join(f"r{s} = t->r.r{s};\n" for s in kept)

    def _stop(self, block: int, state: str) -> str:
        """Save the inputs of `block`, and stop until the runtime lets the thread continue there."""
        self.stops = True
        slots = self._recorder.code.blocks[block].live_in
        pc, load = self._entry(), self._load(slots)
        save = "".join(f"t->r.r{s} = r{s};\n" for s in slots if s in self._recorder.kept)
        return f"{save}t->pc = {pc};\nLEAVE({state});\nR{pc}:;\n{load}"

    def _meeting(self, block: Block, instruction: Instruction) -> str:
        meeting = Meeting(self._recorder.decoder, instruction)
        before = self._recorder.record(instruction, meeting.before)
        after = self._recorder.record(instruction, meeting.after)
        text = f"{before}{self._stop(block.index, 'AT_WARP')}{after}"
        return self._recorder.guarded(instruction, text)

    def _goto(self, block: Block, target: int) -> str:
        if target > block.index:
            return f"goto B{target};\n"
        if not block.waits:
            return f"if (!(++turns & {POLL_MASK:#x}) && poll(c)) {ABANDON}\ngoto B{target};\n"
        return (
            f"if (++waits >= {_PATIENCE}) {{\n{self._stop(target, 'YIELDED')}}}\ngoto B{target};\n"
        )

    def _end(self, block: Block, last: Instruction) -> str:
        if last.name == "bra":
            return self._goto(block, self._recorder.target(last))
        if last.name in ("ret", "exit"):
            return f"LEAVE({self._recorder.exit(block)});\n"
        if last.name == "brx":
            return self._recorder.switch(block, last, lambda to: self._goto(block, to))
        if last.name in ("bar", "barrier"):
            return self._barrier(block, last)
        # A call: of the runtime (printf, assert), or of a slow path that was worth no inlining. It
        # is reached rarely, if ever.
        return f"{ABANDON}\n"

    def _barrier(self, block: Block, last: Instruction) -> str:
        result: list[Operand | None] = []

        def before(group: LaneGroup) -> None:
            result[:] = [barrier(self._recorder.decoder, last, group, block.index)]

        def after(group: LaneGroup) -> None:
            target = result[0]
            if isinstance(target, Register):
                kind = "u32" if "popc" in last.mods else "pred"
                dtype = "u4" if kind == "u32" else bool
                group.write(self._recorder.decoder.write(target, kind), "t->y", dtype)

        text = self._recorder.record(last, before)
        text += self._stop(block.index + 1, "AT_BARRIER") + self._recorder.record(last, after)
        return f"{text}goto B{block.index + 1};\n"
