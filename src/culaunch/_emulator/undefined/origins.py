"""Where undefined values come from, as numbers that travel with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.fault import LAUNCH_FAILED, Fault
from culaunch._emulator.report import Related

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.memory.undefined_bytes import Read
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes


class Origins:
    """The instructions of a chunk that produced undefined values.

    A number identifies an instruction and a lane that executed it, so the origin of a value is
    known in any register of any lane.
    """

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self._known: list[_Origin] = []
        self._index: dict[tuple[int, str], int] = {}

    def note(self, instruction: Instruction, read: Read) -> Lanes:
        """Return the numbers of an instruction in the lanes that have read so."""
        key = (id(instruction), read.text)
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self._known)
            detail = np.zeros(self.chunk.size, np.int64)
            self._known.append(_Origin(instruction, read.text, detail, read.space, read.racing))
        # The latest read of each lane: a value in a loop is reported with the address of its last
        # round.
        self._known[index].detail[read.lanes] = read.detail
        # Instruction and lane in one number, which NumPy moves like any other value.
        return read.lanes.astype(np.int64) + index * self.chunk.size

    def racing(self, origin: Lanes) -> Lanes:
        """Tell which origins are reads that raced."""
        flags = np.array([known.racing is not None for known in self._known])
        return np.asarray(flags[origin // self.chunk.size])

    def fault(self, use: str, origin: int, lane: int) -> Fault:
        """Return the fault of `lane`, which uses a value of that origin."""
        index, reader = divmod(origin, self.chunk.size)
        known = self._known[index]
        block, thread = self.chunk.place(reader)
        position = self.chunk.launch.position(known.instruction)
        detail = int(known.detail[reader])
        # A race is reported for the lane and the place of the racing access. The later use of the
        # value is a note.
        if known.racing is not None:
            reason, related, notes = known.racing(detail)
            return Fault(
                LAUNCH_FAILED,
                reason,
                kind="race",
                lane=reader,
                position=position,
                related=related,
                notes=[*notes, f"{use} depends on the value of this read"],
            )
        what, notes = known.text.format(detail), []
        if known.space == "global":
            notes.append(f"the address: {self.chunk.globals.allocation_of(detail)}")
        option = "check_uninitialized" if known.space == "shared" else "check_unwritten"
        place = f"block {block}, thread {thread} at {position}"
        return Fault(
            LAUNCH_FAILED,
            f"{use} depends on an undefined value, {what}",
            kind="uninitialized",
            lane=lane,
            related=[Related(f"the value: {place}: {position.text.strip()}", position)],
            notes=[*notes, f"({option} turns this check off)"],
        )


@dataclass
class _Origin:
    """An instruction that gave undefined values; `detail` is an address or a lane, by lane."""

    instruction: Instruction
    text: str
    detail: Lanes
    space: str
    racing: Callable[[int], tuple[str, list[Related], list[str]]] | None
