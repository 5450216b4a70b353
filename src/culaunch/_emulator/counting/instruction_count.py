"""The number of executed instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Block, Group, Op


class InstructionCount:
    """How many instructions threads executed: an instruction of a warp counts for every thread.

    Attributes
    ----------
    total : int
    """

    def __init__(self) -> None:
        self.total = 0

    def launch(self, arrays: list[tuple[int, int, int]]) -> None:
        """Ignore the arguments of a launch."""

    def begin(self, block: Block, group: Group) -> list[Op]:
        """Count the instructions of a block; return the operations to run, unchanged."""
        self.total += len(block.instructions) * group.n
        return block.ops

    def end(self, block: Block, group: Group) -> None:
        """Ignore the end of a block."""

    def access(self, group: Group, space: str, address: Any, size: int, verb: str) -> None:
        """Ignore an access to memory."""
