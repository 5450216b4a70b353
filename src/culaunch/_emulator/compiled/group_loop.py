"""A loop over the threads of a group."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._emulator.types import is_float

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._emulator.compiled.group_registers import GroupRegisters
    from culaunch._emulator.compiled.recorder import Recorder
    from culaunch._emulator.ptx.syntax import Instruction

# A compiler makes no vectors of a loop that contains one of these.
_SCALAR = re.compile(
    r"if \(|return|numpy_loop|whole_|half_|_half|(fraction|exponent)_of|fma_f64|__builtin_[bcip]"
)
# GCC 12 makes wrong vectors of the upper half of a product of signed words of 16 bits: it takes
# them as unsigned ones. So no loop has a product of integers, and a shift to the right after it.
_PRODUCT, _SHIFT = "* (u64)", ">>"
# It takes too long for loops with more instructions.
_LONGEST = 16


class GroupLoop:
    """Instructions that each thread runs in turn. Their results stay in variables of the loop."""

    def __init__(self, recorder: Recorder, registers: GroupRegisters) -> None:
        self._recorder = recorder
        self._registers = registers
        self._texts: list[str] = []
        self._reads: dict[int, None] = {}
        self._writes: set[int] = set()
        self._access = ""

    def is_full(self) -> bool:
        """Tell whether it has as many instructions as it may have."""
        return len(self._texts) == _LONGEST

    def uses(self, slots: Iterable[int]) -> bool:
        """Tell whether it reads or writes one of these registers."""
        return bool(self._writes.union(self._reads).intersection(slots))

    def takes(self, text: str) -> bool:
        """Tell whether a compiler makes the right vectors if a text follows."""
        return _SHIFT not in text or not any(_PRODUCT in one for one in self._texts)

    def may(self, access: str) -> bool:
        """Tell whether a load or a store may follow.

        Threads that run together load before any of them stores, as in the NumPy engine.
        """
        return not self._texts or self._access in ("", access)

    def add(
        self,
        text: str,
        reads: list[int],
        writes: Iterable[int] = (),
        *,
        guarded: bool = False,
        access: str = "",
    ) -> None:
        """Add the text of an instruction."""
        # A guarded write keeps the old value in the other threads.
        read = [*reads, *writes] if guarded else reads
        self._reads.update(dict.fromkeys(slot for slot in read if slot not in self._writes))
        self._writes.update(writes)
        self._texts.append(text)
        self._access = self._access or access

    def end(self, live: set[int], *, vector: bool = True) -> tuple[str, set[int]]:
        """End the loop; return its text, and the arrays that only this block uses."""
        registers, texts, writes = self._registers, self._texts, self._writes
        reads = [slot for slot in self._reads if registers.strides[slot] != 0]
        self._texts, self._reads, self._writes, self._access = [], {}, set(), ""
        if not texts:
            return "", set()
        written = sorted(writes & live)
        parts = [
            # Threads that write to one place without a barrier race: any order is right.
            "#pragma GCC ivdep\n" if vector else "",
            "for (u64 l = 0; l < n; ++l) {\nThread *const t = lead + l; (void)t;\n",
            # An empty statement keeps a compiler from making vectors.
            "" if vector else '__asm__ volatile("");\n',
            *map(registers.load, reads),
            *(f"{self._recorder.type(s)} v{s};\n" for s in sorted(writes.difference(reads))),
            *texts,
            *(f"{registers.place(slot)}[l] = v{slot};\n" for slot in written),
            "}\n",
        ]
        return "".join(parts), registers.use([*reads, *written])


def is_vector(instruction: Instruction, text: str) -> bool:
    """Tell whether a compiler makes vectors of an instruction, and the right ones."""
    whole = instruction.name in ("div", "rem") and not any(map(is_float, instruction.mods))
    return not (whole or _SCALAR.search(text) or (_PRODUCT in text and _SHIFT in text))
