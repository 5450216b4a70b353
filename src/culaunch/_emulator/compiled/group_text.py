"""A kernel as C for a group of threads that run side by side.

A group is neighbors along x, two warps at most. A value that is uniform among them, or that grows
by a constant from thread to thread, is computed once. All else is in loops over the group, which a
C compiler makes vectors of. A group runs until its threads go different ways, or until lanes
exchange values. From there its threads run one after the other, in the text of `ThreadText`. They
form the group again at a barrier, if their registers differ as those of a group do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.compiled.group_block import GroupBlock
from culaunch._emulator.compiled.group_registers import GroupRegisters

if TYPE_CHECKING:
    from culaunch._emulator.compiled.recorder import Recorder
    from culaunch._emulator.compiled.thread_text import ThreadText

# The number of threads in a group is a multiple of the first, also in `form_groups` of runtime.c.
_LEAST, _WARP = 16, 32
# The registers of a group should stay in the processor's fastest memory.
_REGISTER_BYTES = 16 << 10
# For a longer text of one thread, the text of a group takes over three seconds to compile.
_LONGEST = 400_000


class GroupText:
    """The C of a kernel for a group.

    Attributes
    ----------
    text : str
        The functions that run a group, and that form it again.
    width : int
        The largest number of threads in a group; 0 if there are no groups.
    stored : str
        The registers that a group keeps while it stops, as fields of C.
    """

    def __init__(self, recorder: Recorder, threads: ThreadText) -> None:
        self.width, self.stored = 0, ""
        self.text = (
            "static int run_group(Launch *c, Thread *lead) { return LEFT; }\n"
            "static u32 gather(Launch *c, Thread *lead) { return 0; }\n"
        )
        if len(threads.text()) <= _LONGEST:
            self._write(recorder, threads)

    def _write(self, recorder: Recorder, threads: ThreadText) -> None:
        registers = GroupRegisters(recorder)
        blocks: dict[int, GroupBlock] = {}
        left = [0]
        while left:
            index = left.pop()
            if index not in blocks:
                block = recorder.code.blocks[index]
                blocks[index] = GroupBlock(recorder, threads, registers, block)
                left += blocks[index].successors
        reached = [blocks[index] for index in sorted(blocks)]
        size = registers.bytes() + max(block.bytes for block in reached)
        # Between barriers, warps often go different ways, and seldom their threads.
        self.width = _WARP if threads.stops else 2 * _WARP
        while self.width > _LEAST and self.width * size > _REGISTER_BYTES:
            self.width //= 2
        self.stored = "".join(map(registers.array, registers.kept))
        self.text = "".join(
            (
                "static int run_group(Launch *c, Thread *const lead)\n{\n",
                "Thread *const t = lead;\nSite *sites = c->sites;\nu32 turns = 0;\n",
                f"Stored *const w = c->stored + (t - c->all) / {_LEAST};\n",
                # The compiler sees that no vector is incomplete.
                f"const u64 n = {_LEAST}ull * (lead->group / {_LEAST});\n",
                "if (!n) __builtin_unreachable();\n",
                registers.declare(),
                "(void)turns; (void)sites; (void)w;\nswitch (t->pc) {\n",
                *(block.entry for block in reached),
                "}\n",
                registers.clear(),
                *(block.text for block in reached),
                "}\nstatic u32 gather(Launch *c, Thread *lead)\n{\n",
                f"Stored *const w = c->stored + (lead - c->all) / {_LEAST};\n",
                "(void)w;\nswitch (lead->where) {\n",
                *(block.rejoin for block in reached),
                "}\nreturn 0;\n}\n",
            )
        )
