"""Where a group of threads has its registers: one variable for all of them, or an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.compiled.c_types import c_type
from culaunch._emulator.compiled.strides import Strides

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._emulator.compiled.recorder import Recorder


class GroupRegisters:
    """The registers of a group, by slot.

    Attributes
    ----------
    strides : Strides
        How registers differ between neighbors.
    varying : set of int
        The registers that have arrays.
    kept : list of int
        Of these, the ones that live across barriers. Their arrays stay where they are meanwhile.
    """

    def __init__(self, recorder: Recorder) -> None:
        blocks = recorder.code.blocks
        self._recorder = recorder
        self._live = {slot for block in blocks for slot in block.live_in}
        self._wide: set[int] = set()
        self.strides = Strides(recorder.code)
        self.varying = {slot for slot in recorder.slots if self.strides[slot] is None}
        after = {block.index + 1 for block in blocks if is_barrier(recorder, block.index)}
        live = {slot for index in after for slot in blocks[index].live_in}
        self.kept = sorted(self.varying & live)

    def use(self, slots: Iterable[int]) -> set[int]:
        """Note that arrays are used; return those that only this block uses."""
        arrays = self.varying.intersection(slots)
        self._wide.update(arrays & self._live)
        return arrays - self._live

    def declare(self) -> str:
        """Return the variables and arrays of the whole text."""
        scalars = set(self._recorder.slots) - self.varying
        return "".join(
            (
                *(f"{self._recorder.type(s)} r{s} = 0;\n" for s in sorted(scalars)),
                *map(self.array, sorted(self._wide.difference(self.kept))),
            )
        )

    def clear(self) -> str:
        """Return the statements that start arrays which may be read before they are written."""
        slots = self._wide.union(self.kept).intersection(self._recorder.code.blocks[0].live_in)
        return "".join(
            f"memset({self.place(s)}, 0, {self.size(s)} * GROUP);\n" for s in sorted(slots)
        )

    def bytes(self) -> int:
        """Return the bytes of a thread in the arrays of the whole text."""
        return sum(map(self.size, self._wide.union(self.kept)))

    def array(self, slot: int) -> str:
        """Return the declaration of an array."""
        # Loops over words of one size are shorter, so a predicate has a word, too.
        kind = "u32" if self._is_predicate(slot) else self._recorder.type(slot)
        return f"{kind} r{slot}[GROUP];\n"

    def place(self, slot: int) -> str:
        """Return the name of an array."""
        return f"w->r{slot}" if slot in self.kept else f"r{slot}"

    def size(self, slot: int) -> int:
        """Return the bytes of an element."""
        return 4 if self._is_predicate(slot) else int(self._recorder.code.zeros[slot].itemsize)

    def name(self, slot: int) -> str:
        """Return the variable of a register within a loop over the group."""
        return f"r{slot}" if self.strides[slot] == 0 else f"v{slot}"

    def load(self, slot: int) -> str:
        """Return the declaration of that variable, with the value of thread `l`."""
        test = " != 0" if self._is_predicate(slot) else ""
        return f"{self._recorder.type(slot)} v{slot} = {self.value(slot)}{test};\n"

    def value(self, slot: int) -> str:
        """Return the value of a register in thread `l` of the group."""
        stride = self.strides[slot]
        if stride is None:
            return f"{self.place(slot)}[l]"
        kind = self._recorder.type(slot)
        return f"r{slot} + ({kind})({stride} * ({kind})l)" if stride else f"r{slot}"

    def gather(self, slots: Iterable[int]) -> str:
        """Return the statements that take registers from the threads of a group.

        They return 0 from a function if a thread's register is not what the group expects.
        """
        statements = []
        for slot in slots:
            own, first, stride = f"lead[l].r.r{slot}", f"lead->r.r{slot}", self.strides[slot]
            if stride is None:
                statements.append(f"w->r{slot}[l] = {own};\n")
            elif stride:
                kind = self._recorder.type(slot)
                statements.append(f"if ({own} != ({kind})({first} + {stride} * l)) return 0;\n")
            else:
                # Bits, because floats of other bits may be equal.
                statements.append(f"if (memcmp(&{own}, &{first}, sizeof {own})) return 0;\n")
        return f"for (u64 l = 0; l < lead->first; ++l) {{\n{''.join(statements)}}}\n"

    def _is_predicate(self, slot: int) -> bool:
        return self._recorder.type(slot) == c_type(np.dtype(bool))


def is_barrier(recorder: Recorder, block: int) -> bool:
    """Tell whether a block ends with a barrier."""
    last = recorder.split(recorder.code.blocks[block])[1]
    return last is not None and last.name in ("bar", "barrier")
