"""The bytes between shared variables, which no access may reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._base.values import counted
from culaunch._emulator.fault import ILLEGAL_ADDRESS, Fault
from culaunch._image import demangle

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.memory.bytes import Piece
    from culaunch._emulator.memory.scratch import Scratch
    from culaunch._emulator.ptx.syntax import Variable
    from culaunch._emulator.types import Lanes

_GAP = -1


class Zones:
    """Which shared variable each byte belongs to.

    Parameters
    ----------
    shared : Scratch
        The shared memory of a chunk.
    variables : list of (int, Variable)
        The variables with their addresses, and gaps in between.
    dynamic_offset : int
        The start of the dynamic part.
    """

    def __init__(
        self, shared: Scratch, variables: list[tuple[int, Variable]], dynamic_offset: int
    ) -> None:
        self._stride = shared.stride
        self._variables = [(at, one.size, demangle(one.name) or one.name) for at, one in variables]
        self._owner: Lanes = np.full(shared.stride, _GAP, np.int32)
        for number, (at, size, _) in enumerate(self._variables):
            self._owner[at : at + size] = number
        # The dynamic part is one variable: a kernel divides it as it likes.
        self._owner[dynamic_offset:] = len(self._variables)

    def check(self, group: Group, piece: Piece, size: int, verb: str) -> None:
        """Raise the fault of the first lane whose access leaves a variable."""
        offset = piece.at % self._stride
        first, last = self._owner[offset], self._owner[offset + size - 1]
        wrong = np.flatnonzero((first == _GAP) | (first != last))
        if not wrong.shape[0]:
            return
        index = int(wrong[0])
        lane = index if piece.lanes is None else int(piece.lanes[index])
        at = int(offset[index])
        raise Fault(
            ILLEGAL_ADDRESS,
            f"{size}-byte {verb} of shared address {at:#x}: {self._describe(at, size)}",
            kind="beyond-variable",
            lane=group.lane_at(lane),
            notes=["(check_variables keeps bytes free around each shared variable)"],
        )

    def _describe(self, at: int, size: int) -> str:
        """Say where an access is relative to the nearest variable."""

        def distance(variable: tuple[int, int, str]) -> int:
            start, length, _ = variable
            return max(start - at - size + 1, at - (start + length) + 1, 0)

        start, length, name = min(self._variables, key=distance)
        name = f"the variable {name} of {counted(length, 'byte')}"
        if at >= start + length:
            return f"{counted(at - start - length, 'byte')} after the end of {name}"
        if at + size <= start:
            return f"{counted(start - at, 'byte')} before {name}"
        return f"crossing the {'end' if at >= start else 'start'} of {name}"
