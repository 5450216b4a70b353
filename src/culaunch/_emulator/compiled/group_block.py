"""A block of a kernel as C for a group of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.compiled.c_types import ABANDON
from culaunch._emulator.compiled.group_loop import GroupLoop, is_vector
from culaunch._emulator.compiled.group_registers import is_barrier
from culaunch._emulator.compiled.spans import Span
from culaunch._emulator.compiled.strides import widened
from culaunch._emulator.compiled.thread_text import POLL_MASK
from culaunch._emulator.compiled.warp import barrier
from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.decode.liveness import reads_and_writes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._emulator.compiled.group_registers import GroupRegisters
    from culaunch._emulator.compiled.recorder import Recorder
    from culaunch._emulator.compiled.thread_text import ThreadText
    from culaunch._emulator.machine.state import Block
    from culaunch._emulator.ptx.syntax import Instruction

# A round of a group's loop is a round of many threads.
_POLL_MASK = POLL_MASK >> 4


class GroupBlock:
    """The C of a block.

    Attributes
    ----------
    successors : list of int
        The blocks that a group may reach from it.
    entry : str
        The case of the switch that continues after its barrier, if a group stops there.
    rejoin : str
        The case of the switch that makes a group of threads which stopped there.
    text : str
        The statements.
    bytes : int
        The bytes of a thread in arrays that only this block uses.
    """

    def __init__(
        self, recorder: Recorder, threads: ThreadText, registers: GroupRegisters, block: Block
    ) -> None:
        self._recorder = recorder
        self._threads = threads
        self._registers = registers
        self._block = block
        self._loop = GroupLoop(recorder, registers)
        self._parts: list[str] = []
        self._arrays: set[int] = set()
        self._live = self._live_before()
        self.successors: list[int] = []
        self.entry = self.rejoin = ""
        if self._write():
            following = block.index + 1
            if following < len(recorder.code.blocks):
                self.successors.append(following)
                self._parts.append(f"goto W{following};\n")
        arrays = "".join(map(registers.array, sorted(self._arrays)))
        self.text = f"W{block.index}:;\n{{\n{arrays}{''.join(self._parts)}}}\n"
        self.bytes = sum(map(registers.size, self._arrays))

    def _live_before(self) -> list[set[int]]:
        """Return the live registers before each instruction, and after the last."""
        code = self._recorder.code
        live = {s for to in self._block.end.successors for s in code.blocks[to].live_in}
        found = [live]
        for instruction in reversed(self._block.instructions):
            reads, writes = reads_and_writes(instruction, code.carry)
            live = live.difference(writes if instruction.guard is None else ()).union(reads)
            found.append(live)
        return found[::-1]

    def _write(self) -> bool:
        """Write the block; tell whether the group may go on to the next one."""
        block = self._block
        body, last = self._recorder.split(block)
        if body and definition(body[0]).warp_mask(body[0]) is not None:
            self._leave(self._threads.join_at_start(block), block.live_in)
            return False
        for index, instruction in enumerate(body):
            self._instruction(index, instruction)
        if last is not None:
            return self._last(len(body), last)
        self._flush(len(body))
        if not body:
            self._parts.append("LEAVE_GROUP(EXITED);\n")
        return True

    def _instruction(self, index: int, instruction: Instruction) -> None:
        reads, writes = reads_and_writes(instruction, self._recorder.code.carry)
        effects = definition(instruction).effects
        if writes and not self._registers.varying.intersection(writes):
            if self._loop.uses(writes) or (effects and not self._loop.may("load")):
                self._flush(index)
            self._parts.append(self._unwrapped(instruction))
            self._parts.append(self._recorder.instruction(instruction))
            return
        if instruction.name in ("fence", "membar") or not (writes or effects):
            return
        span = Span.of(self._recorder, self._registers.strides, instruction)
        if span is None:
            text, access = self._recorder.instruction(instruction, self._registers.name), ""
        else:
            pointer = f"p{index}"
            access = "store" if span.writes else "load"
            text = span.access(pointer, self._registers.name)
        vector = is_vector(instruction, text)
        if not (vector and self._loop.takes(text)) or (access and not self._loop.may(access)):
            self._flush(index)
        if span is not None:
            self._parts.append(span.check(pointer))
        guarded = instruction.guard is not None
        self._loop.add(text, reads, writes, guarded=guarded, access=access)
        if not vector or self._loop.is_full():
            self._flush(index + 1, vector=vector)

    def _unwrapped(self, instruction: Instruction) -> str:
        """Return the check that a widened register does not wrap around within the group."""
        source = widened(instruction)
        stride = self._registers.strides.of(source[0]) if source else 0
        if source is None or not stride:
            return ""
        register, kind = source
        rest = f"{stride} * (i64)(n - 1)"
        return f"if (__builtin_expect(wraps_{kind}(r{register.slot}, {rest}), 0)) return ALONE;\n"

    def _flush(self, index: int, *, vector: bool = True) -> None:
        """End the loop that is being written, before an instruction."""
        text, arrays = self._loop.end(self._live[index], vector=vector)
        self._parts.append(text)
        self._arrays.update(arrays)

    def _leave(self, pc: int, slots: Iterable[int]) -> None:
        """Let the threads of the group continue one after the other."""
        kept = [slot for slot in slots if slot in self._recorder.slots]
        self._arrays.update(self._registers.use(kept))
        stores = "".join(f"lead[l].r.r{s} = {self._registers.value(s)};\n" for s in kept)
        # Vectors are not worth their time in the compiler here: the empty statement prevents them.
        self._parts.append(
            "for (u64 l = 0; l < n; ++l) {\n"
            f'__asm__ volatile("");\nlead[l].pc = {pc};\n{stores}}}\nLEAVE_GROUP(LEFT);\n'
        )

    def _leave_at_end(self, index: int) -> None:
        live = sorted(self._live[index])
        self._leave(self._threads.join_at_end(self._block, live), live)

    def _last(self, index: int, last: Instruction) -> bool:
        """Write the end of the block; tell whether the group may go on to the next one."""
        text = self._end(last)
        if text is None:
            self._flush(index)
            self._leave_at_end(index)
            return False
        if self._registers.strides.is_uniform(last.guard):
            self._flush(index)
            self._parts.append(self._recorder.guarded(last, text))
            return last.guard is not None or is_barrier(self._recorder, self._block.index)
        assert last.guard is not None
        let = self._recorder.let("guard", last.guard, "pred", self._registers.name)
        reads = reads_and_writes(last, self._recorder.code.carry)[0]
        self._loop.add(f"{{ u8 guard;\n{let}\nyes += guard;\n}}\n", reads)
        self._parts.append("u32 yes = 0;\n")
        self._flush(index)
        self._parts.append(f"if (yes == n) {{\n{text}}}\nif (__builtin_expect(yes, 0)) {{\n")
        self._leave_at_end(index)
        self._parts.append("}\n")
        return True

    def _end(self, last: Instruction) -> str | None:
        """Return how the whole group ends the block; None if its threads may differ."""
        block, recorder, strides = self._block, self._recorder, self._registers.strides
        if last.name == "bra":
            target = recorder.target(last)
            # Threads that wait for each other take turns.
            return None if block.waits and target <= block.index else self._goto(target)
        if last.name in ("ret", "exit"):
            return f"LEAVE_GROUP({recorder.exit(block)});\n"
        if last.name == "brx":
            if block.waits or not strides.is_uniform(last.operands[0]):
                return None
            return recorder.switch(block, last, self._goto)
        if is_barrier(recorder, block.index):
            if "red" in last.mods or not all(map(strides.is_uniform, last.operands)):
                return None
            return self._barrier(last)
        return f"{ABANDON}\n"

    def _goto(self, target: int) -> str:
        self.successors.append(target)
        if target > self._block.index:
            return f"goto W{target};\n"
        return f"if (!(++turns & {_POLL_MASK:#x}) && poll(c)) {ABANDON}\ngoto W{target};\n"

    def _barrier(self, last: Instruction) -> str:
        recorder, pc = self._recorder, self._block.index + 1
        live = [s for s in recorder.code.blocks[pc].live_in if s in recorder.slots]
        slots = [slot for slot in live if slot not in self._registers.varying]
        recorder.kept.update(slots)
        self.entry = f"case {pc}: goto J{pc};\n"
        self.rejoin = f"case {self._block.index}:\n{self._registers.gather(live)}return {pc};\n"
        arrive = recorder.record(
            last, lambda group: barrier(recorder.decoder, last, group, self._block.index)
        )
        return (
            f"{arrive}{''.join(f't->r.r{s} = r{s};' for s in slots)}\n"
            f"t->pc = {pc};\nLEAVE_GROUP(AT_BARRIER);\n"
            f"J{pc}:;\n{''.join(f'r{s} = t->r.r{s};' for s in slots)}\n"
        )
