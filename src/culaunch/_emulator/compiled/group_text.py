"""A kernel as C for a group of threads that run side by side.

A group is neighbors along x. What is uniform among them, and what grows from thread to thread by a
constant, is computed once. All else is loops over the group, which a C compiler makes vectors of.
A group runs on until its threads go different ways, or until lanes exchange values. From there its
threads run one after the other, in the text of `ThreadText`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._emulator.compiled.c_types import ABANDON
from culaunch._emulator.compiled.spans import Span
from culaunch._emulator.compiled.strides import Strides, widened
from culaunch._emulator.compiled.thread_text import POLL_MASK
from culaunch._emulator.compiled.warp import barrier
from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.decode.liveness import reads_and_writes
from culaunch._emulator.ptx.syntax import Register
from culaunch._emulator.types import is_float

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._emulator.compiled.recorder import Recorder
    from culaunch._emulator.compiled.thread_text import ThreadText
    from culaunch._emulator.machine.state import Block
    from culaunch._emulator.ptx.syntax import Instruction

__all__ = ["GroupText"]

_LEAST, _WARP, _MOST = 16, 32, 256
# The registers of a group should stay in the processor's fastest memory.
_REGISTER_BYTES = 16 << 10
# In a loop, these keep a compiler from making vectors of all that is in it.
_SCALAR = re.compile(
    r"if \(|return|numpy_loop|whole_|half_|_half|(fraction|exponent)_of|fma_f64|__builtin_[bcip]"
)
# A compiler takes too long for longer loops.
_LONGEST = 16
# A round of a group's loop is a round of many threads.
_POLL_MASK = POLL_MASK >> 4


class GroupText:
    """The C of a kernel for a group.

    Attributes
    ----------
    text : str
        The function that runs a group.
    width : int
        The largest number of threads in a group.
    stored : str
        The registers that a group keeps while it stops, as fields of C.
    """

    def __init__(self, recorder: Recorder, threads: ThreadText) -> None:
        self._recorder = recorder
        self._threads = threads
        self._code = recorder.code
        self._strides = Strides(recorder.code)
        self._entries = 0
        self._wide: set[int] = set()
        self._varying = {s for s in recorder.slots if self._strides[s] is None}
        after = {b.index + 1 for b in self._code.blocks if _is_barrier(recorder.split(b)[1])}
        live = {s for b in self._code.blocks if b.index in after for s in b.live_in}
        self._kept = sorted(self._varying & live)
        self.stored = "".join(map(self._array, self._kept))
        blocks, local = self._reachable()
        self._wide.update(self._kept)
        wide, scalars = self._wide, set(recorder.slots) - self._varying
        size = sum(map(self._size, wide)) + local
        # Between barriers, warps often go different ways.
        self.width = _WARP if threads.stops else _MOST
        while self.width > _LEAST and self.width * size > _REGISTER_BYTES:
            self.width //= 2
        zeros = [s for s in sorted(self._varying) if s in self._code.blocks[0].live_in]
        self.text = "".join(
            (
                "static int run_group(Launch *c, Thread *const lead)\n{\n",
                "Thread *const t = lead;\nSite *sites = c->sites;\nu32 turns = 0;\n",
                # The compiler sees that no vector is incomplete.
                f"const u64 n = {_LEAST}ull * (lead->group / {_LEAST});\n",
                "if (!n) __builtin_unreachable();\n",
                *(f"{recorder.type(s)} r{s} = 0;\n" for s in sorted(scalars)),
                "Stored *const w = c->stored + (t - c->all) / 16;\n",
                *map(self._array, sorted(wide.difference(self._kept))),
                "(void)turns; (void)sites; (void)w;\nswitch (t->pc) {\n",
                *(f"case {pc}: goto J{pc};\n" for pc in range(1, self._entries + 1)),
                "}\n",
                *(
                    f"memset({self._wide_name(s)}, 0, {self._size(s)} * GROUP);\n"
                    for s in zeros
                    if s in wide
                ),
                *blocks,
                "}\n",
            )
        )

    def _reachable(self) -> tuple[list[str], int]:
        """Return the texts of the blocks that a group reaches, and the bytes of their registers."""
        texts: dict[int, str] = {}
        most, left = 0, [0]
        while left:
            index = left.pop()
            if index in texts:
                continue
            block = _BlockText(self, self._code.blocks[index])
            texts[index] = block.text
            most = max(most, block.size)
            left += block.successors
        return [texts[index] for index in sorted(texts)], most

    def _wide_name(self, slot: int) -> str:
        return f"w->r{slot}" if slot in self._kept else f"r{slot}"

    def _size(self, slot: int) -> int:
        return 4 if self._is_predicate(slot) else self._code.zeros[slot].itemsize

    def _is_predicate(self, slot: int) -> bool:
        return self._code.zeros[slot].dtype.kind == "b"

    def _array(self, slot: int) -> str:
        # Loops over words of one size are shorter.
        kind = "u32" if self._is_predicate(slot) else self._recorder.type(slot)
        return f"{kind} r{slot}[GROUP];\n"


class _BlockText:
    """The text of one block."""

    def __init__(self, kernel: GroupText, block: Block) -> None:
        self._kernel = kernel
        self._recorder = kernel._recorder
        self._strides = kernel._strides
        self._varying = kernel._varying
        self._block = block
        self._parts: list[str] = []
        # Of the loop that is being written: the bodies, and what they read and write.
        self._loop: list[str] = []
        self._loop_reads: list[int] = []
        self._loop_writes: set[int] = set()
        self._access = ""
        self._local: set[int] = set()
        self.successors: list[int] = []
        self._array = kernel._wide_name
        self._across = {s for b in kernel._code.blocks for s in b.live_in}
        self._live = self._live_before()
        self._write()
        self.size = sum(map(kernel._size, self._local))
        self.text = "".join(
            (
                f"W{block.index}:;\n{{\n",
                *map(kernel._array, sorted(self._local)),
                *self._parts,
                "}\n",
            )
        )

    def _live_before(self) -> list[set[int]]:
        """Return the live registers before each instruction, and after the last."""
        code = self._kernel._code
        live = {s for to in self._block.end.successors for s in code.blocks[to].live_in}
        found = [live]
        for instruction in reversed(self._block.instructions):
            reads, writes = reads_and_writes(instruction, code.carry)
            live = set(live)
            if instruction.guard is None:
                live.difference_update(writes)
            live.update(reads)
            found.append(live)
        return found[::-1]

    def _write(self) -> None:
        block = self._block
        body, last = self._recorder.split(block)
        if body and definition(body[0]).warp_mask(body[0]) is not None:
            self._leave(self._kernel._threads.join_at_start(block), block.live_in)
            return
        for index, instruction in enumerate(body):
            self._instruction(index, instruction)
        if last is not None:
            if not self._last(len(body), last):
                return
        else:
            self._flush(len(body))
            if not body:
                self._parts.append("LEAVE_GROUP(EXITED);\n")
        following = block.index + 1
        if following < len(self._kernel._code.blocks):
            self.successors.append(following)
            self._parts.append(f"goto W{following};\n")

    def _instruction(self, index: int, instruction: Instruction) -> None:
        reads, writes = reads_and_writes(instruction, self._kernel._code.carry)
        effects = definition(instruction).effects
        if writes and not self._varying.intersection(writes):
            if self._loop_writes.union(self._loop_reads).intersection(writes):
                self._flush(index)
            if effects:
                self._order(index, "load")
            source = widened(instruction)
            if source is not None and (stride := self._strides.of(source[0])):
                register, kind = source
                self._parts.append(
                    f"if (wraps_{kind}(r{register.slot}, {stride} * (i64)(n - 1))) return ALONE;\n"
                )
            self._parts.append(self._recorder.instruction(instruction))
            return
        if instruction.name in ("fence", "membar") or not (writes or effects):
            return
        span = Span.of(self._recorder, self._strides, instruction)
        if span is not None:
            self._order(index, "store" if span.writes else "load")
            pointer = f"p{index}"
            self._parts.append(span.check(pointer))
            text, vector = span.access(pointer, self._name), True
        else:
            text = self._recorder.instruction(instruction, self._name)
            vector = _SCALAR.search(text) is None and not (
                instruction.name in ("div", "rem") and not any(map(is_float, instruction.mods))
            )
        if not vector:
            self._flush(index)
        self._add(text, reads, writes, guarded=instruction.guard is not None)
        if not vector or len(self._loop) == _LONGEST:
            self._flush(index + 1, vector=vector)

    def _order(self, index: int, access: str) -> None:
        """End the loop before a load that comes after stores, or a store after loads."""
        if self._access not in ("", access):
            self._flush(index)
        self._access = access

    def _add(self, text: str, reads: list[int], writes: list[int], *, guarded: bool) -> None:
        """Add an instruction to the loop that is being written."""
        read = [*reads, *writes] if guarded else reads
        self._loop_reads += [slot for slot in read if slot not in self._loop_writes]
        self._loop_writes.update(writes)
        self._loop.append(text)

    def _flush(self, index: int, *, vector: bool = True) -> None:
        """End the loop that is being written, before an instruction."""
        self._access = ""
        if not self._loop:
            return
        reads = [s for s in dict.fromkeys(self._loop_reads) if self._strides[s] != 0]
        written = sorted(self._loop_writes & self._live[index])
        wide = {*written, *(s for s in reads if s in self._varying)}
        self._kernel._wide.update(wide & self._across)
        self._local.update(wide - self._across)
        recorder = self._recorder
        # Threads that write to one place without a barrier race: any order is right.
        parts = [
            "#pragma GCC ivdep\n" if vector else "",
            "for (u64 l = 0; l < n; ++l) {\nThread *const t = lead + l; (void)t;\n",
        ]
        for slot in reads:
            test = " != 0" if self._kernel._is_predicate(slot) else ""
            value = self._value(slot)
            parts.append(f"{recorder.type(slot)} v{slot} = {value}{test};\n")
        parts += [
            f"{recorder.type(slot)} v{slot};\n" for slot in sorted(self._loop_writes - {*reads})
        ]
        parts += self._loop
        parts += [f"{self._array(slot)}[l] = v{slot};\n" for slot in written]
        self._parts += [*parts, "}\n"]
        self._loop, self._loop_reads, self._loop_writes = [], [], set()

    def _name(self, slot: int) -> str:
        return f"r{slot}" if self._strides[slot] == 0 else f"v{slot}"

    def _value(self, slot: int) -> str:
        """Return the value of a register in thread `l` of the group."""
        stride = self._strides[slot]
        if stride is None:
            return f"{self._array(slot)}[l]"
        kind = self._recorder.type(slot)
        return f"r{slot} + ({kind})({stride} * ({kind})l)" if stride else f"r{slot}"

    def _leave(self, pc: int, slots: Iterable[int]) -> None:
        """Let the threads of the group continue one after the other."""
        kept = [slot for slot in slots if slot in self._recorder.slots]
        wide = self._varying.intersection(kept)
        self._kernel._wide.update(wide & self._across)
        self._local.update(wide - self._across)
        stores = "".join(f"lead[l].r.r{slot} = {self._value(slot)};\n" for slot in kept)
        # Vectors are not worth their time in the compiler here: the empty statement prevents them.
        self._parts.append(
            "for (u64 l = 0; l < n; ++l) {\n"
            f'__asm__ volatile("");\nlead[l].pc = {pc};\n{stores}}}\nLEAVE_GROUP(LEFT);\n'
        )

    def _last(self, index: int, last: Instruction) -> bool:
        """Write the end of the block; tell whether the group may go on to the next one."""
        block, uniform = self._block, self._strides.is_uniform
        live = self._live[index]
        text = self._end(last)
        if text is None:
            self._flush(index)
            self._leave(self._kernel._threads.join_at_end(block, sorted(live)), sorted(live))
            return False
        if uniform(last.guard):
            self._flush(index)
            self._parts.append(self._recorder.guarded(last, text))
            return last.guard is not None or _is_barrier(last)
        assert last.guard is not None
        self._parts.append("u32 yes = 0;\n")
        let = self._recorder.let("guard", last.guard, "pred", self._name)
        reads = reads_and_writes(last, self._kernel._code.carry)[0]
        self._add(f"{{ u8 guard;\n{let}\nyes += guard;\n}}\n", reads, [], guarded=False)
        self._flush(index)
        self._parts.append(f"if (yes == n) {{\n{text}}}\nif (__builtin_expect(yes, 0)) {{\n")
        self._leave(self._kernel._threads.join_at_end(block, sorted(live)), sorted(live))
        self._parts.append("}\n")
        return True

    def _end(self, last: Instruction) -> str | None:
        """Return how the whole group ends the block; None if its threads may differ."""
        block, recorder = self._block, self._recorder
        if last.name == "bra":
            target = recorder.target(last)
            return None if block.waits and target <= block.index else self._goto(target)
        if last.name in ("ret", "exit"):
            return f"LEAVE_GROUP({recorder.exit(block)});\n"
        if last.name == "brx":
            if block.waits or not self._strides.is_uniform(last.operands[0]):
                return None
            return recorder.switch(block, last, self._goto)
        if _is_barrier(last):
            if "red" in last.mods or not all(map(self._strides.is_uniform, last.operands)):
                return None
            return self._barrier(last)
        return f"{ABANDON}\n"

    def _goto(self, target: int) -> str:
        self.successors.append(target)
        if target > self._block.index:
            return f"goto W{target};\n"
        return f"if (!(++turns & {_POLL_MASK:#x}) && poll(c)) {ABANDON}\ngoto W{target};\n"

    def _barrier(self, last: Instruction) -> str:
        block, kernel, recorder = self._block, self._kernel, self._recorder
        live = kernel._code.blocks[block.index + 1].live_in
        slots = [s for s in live if s in recorder.slots and s not in self._varying]
        recorder.kept.update(slots)
        text = recorder.record(
            last, lambda group: barrier(recorder.decoder, last, group, block.index)
        )
        kernel._entries += 1
        pc = kernel._entries
        return (
            f"{text}{''.join(f't->r.r{s} = r{s};' for s in slots)}\n"
            f"t->pc = {pc};\nLEAVE_GROUP(AT_BARRIER);\n"
            f"J{pc}:;\n{''.join(f'r{s} = t->r.r{s};' for s in slots)}\n"
        )


def _is_barrier(last: Instruction | None) -> bool:
    return last is not None and last.name in ("bar", "barrier")
