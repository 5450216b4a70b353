"""The interface of a rule for undefined bits: its queries, and how it reports a use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.undefined.origins import Origins

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.types import Lanes


class Context:
    """Undefined values of a chunk, and the operations of rules on them.

    Attributes
    ----------
    origins : Origins
        Where undefined values come from.
    after : list of callable
        The work that a rule postpones until the instruction has run.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.origins = Origins(chunk)
        self.after: list[Callable[[], None]] = []

    def lanes(self, group: Group, slots: Collection[int]) -> tuple[Lanes, Lanes] | None:
        """Return which lanes have an undefined bit in some of `slots`, and the origins of one."""
        found = None
        for slot in slots:
            taint = group.undefined.get(slot)
            if taint is None:
                continue
            if found is None:
                found = (taint.lanes, taint.origin)
            else:
                # A report names one origin, from the first register that has one.
                origin = np.where(found[0], found[1], taint.origin)
                found = (found[0] | taint.lanes, origin)
        return found

    def with_bits(self, group: Group, slots: Collection[int]) -> Group:
        """Return a copy of `group` in which `slots` hold their undefined bits as values."""
        # The marks replace the values, and defined bits are zero. An instruction that only moves
        # bits then moves the marks.
        regs = list(group.regs)
        for slot in slots:
            taint = group.undefined.get(slot)
            regs[slot] = group.code.zeros[slot] if taint is None else taint.bits
        return group.with_registers(regs)

    def use(
        self, group: Group, found: tuple[Lanes, Lanes], what: str, active: Lanes | None
    ) -> None:
        """Report the first of the lanes `found`, if it is active."""
        hit, origin = found
        if active is not None:
            hit = hit & active
        if hit.any():
            index = int(np.flatnonzero(hit)[0])
            raise self.origins.fault(what, int(origin[index]), group.lane_at(index))
