"""Blocks of a grid that run together, and what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator._memory._scratch import Scratch
from culaunch._emulator._undefined._engine import Undefined

if TYPE_CHECKING:
    from culaunch._emulator._launch import Launch
    from culaunch._emulator._memory._ranges import GlobalMemory
    from culaunch._emulator._types import Lanes
    from culaunch._emulator._undefined._bytes import Read

__all__ = ["Chunk"]

WARP = 32


class Chunk:
    """Some consecutive blocks of a launch.

    Lanes are numbered block after block; each block's lanes are padded to whole warps, and the
    padding is never alive.
    """

    def __init__(self, launch: Launch, first_block: int, blocks: int) -> None:
        self.launch: Launch = launch
        self.options = launch.options
        self.first_block: int = first_block
        self.blocks: int = blocks
        self.threads = launch.threads
        self.width: int = -(-self.threads // WARP) * WARP
        self.size: int = blocks * self.width
        self.globals: GlobalMemory = launch.memory
        self.read_only = launch.read_only
        self.params: Scratch = launch.params
        self.shared: Scratch = Scratch("shared", blocks, launch.shared_bytes)
        self.local = Scratch("local", self.size, launch.local_bytes)
        self.alive: Lanes = np.zeros((blocks, self.width), bool)
        self.alive[:, : self.threads] = True
        self.alive = self.alive.reshape(-1)
        self.alive_in_block: Lanes = np.full(blocks, self.threads, np.int64)
        self.alive_total = blocks * self.threads
        self.block_of_lane: Lanes = np.repeat(np.arange(blocks), self.width if blocks > 1 else 1)
        self.special: dict[str, Lanes] = {}
        # What the instruction that runs has read that is undefined, for `undefined` to take up.
        self.undefined_reads: list[Read] = []
        self.undefined: Undefined = Undefined(self)

    def lanes(self) -> Lanes:
        """Return every lane that is a thread."""
        return np.flatnonzero(self.alive)

    def exit(self, lanes: Lanes) -> None:
        """Take `lanes` out for good."""
        self.alive[lanes] = False
        self.alive_total -= lanes.shape[0]
        self.alive_in_block -= np.bincount(lanes // self.width, minlength=self.blocks)

    def place(self, lane: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Return the block and thread indices of a lane."""
        block, thread = divmod(lane, self.width)
        return (
            _index(block + self.first_block, self.launch.grid),
            _index(thread, self.launch.block),
        )


def _index(flat: int, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    x, rest = flat % shape[0], flat // shape[0]
    return x, rest % shape[1], rest // shape[1]
