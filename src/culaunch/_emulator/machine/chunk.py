"""Blocks of a grid that run together, and their shared state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from culaunch._emulator.memory.scratch import Scratch
from culaunch._emulator.memory.shared import SharedMemory
from culaunch._emulator.memory.tensor_memory import TensorMemory

if TYPE_CHECKING:
    from culaunch._emulator.machine.children import Children
    from culaunch._emulator.machine.clusters import Cluster
    from culaunch._emulator.memory.ranges import GlobalMemory
    from culaunch._emulator.memory.read_only import ReadOnlyMemory
    from culaunch._emulator.memory.surface import Surface
    from culaunch._emulator.memory.texture import Texture
    from culaunch._emulator.memory.undefined_bytes import Read
    from culaunch._emulator.options import Options
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.report import Position, Related
    from culaunch._emulator.types import Lanes

# What PTX's lane masks, shuffles and matrix fragments are made for; no GPU has another size.
WARP = 32
# The lanes that execute a product of wgmma together.
WARPGROUP = 4 * WARP
# With a seed, the warps of a chunk run in this many groups at most, one after the other: each costs
# as much as all warps together.
_MOST_TURNS = 4
# Makes the random numbers others than those for the order of blocks, which have the same seed.
_TURNS = 1


class Chunk:
    """Some consecutive blocks of a launch, all those of a cluster among them.

    Their threads run together: one NumPy operation serves thousands of threads. Lanes are numbered
    block after block. Each block's lanes are padded to whole warps, and a lane's number determines
    its warp. The padding is never alive.

    Attributes
    ----------
    width, size : int
        The lanes of a block and of the chunk, including the padding.
    alive : numpy.ndarray
        A flag for each lane that is a thread and has not exited.
    alive_total : int
        Number of live lanes. A group of that size has all of them, and need not wait for any other.
    special : dict
        The special registers that were read, by name: computed once for all lanes.
    undefined_reads : list of Read
        The undefined values that the running instruction has read; empty between instructions.
    """

    def __init__(self, launch: LaunchView, first_block: int, blocks: int) -> None:
        self.launch: LaunchView = launch
        self.options = launch.options
        self.first_block: int = first_block
        self.blocks: int = blocks
        self.threads = launch.threads
        self.width: int = -(-self.threads // WARP) * WARP
        self.size: int = blocks * self.width
        self.globals: GlobalMemory = launch.memory
        self.read_only = launch.read_only
        self.params: Scratch = launch.params
        self.local = Scratch("local", self.size, launch.local_bytes)
        self.alive: Lanes = np.zeros((blocks, self.width), bool)
        self.alive[:, : self.threads] = True
        self.alive = self.alive.reshape(-1)
        self.alive_in_block: Lanes = np.full(blocks, self.threads, np.int64)
        self.alive_total = blocks * self.threads
        self.shared: Scratch = SharedMemory(
            blocks, launch.shared_bytes, launch.cluster.size, self.alive_in_block
        )
        # With one block, the answer is the same for every lane, and stays a single value. Results
        # that are computed from it, such as the row of shared memory, are then as cheap as a
        # constant.
        self.block_of_lane: Lanes = np.repeat(np.arange(blocks), self.width if blocks > 1 else 1)
        self.special: dict[str, Lanes] = {}
        # The check of races, if it is on (`Races`, which needs this class).
        self.races: Any = None
        self.undefined_reads: list[Read] = []
        # Created by the first instruction that uses it.
        self.tensor: TensorMemory | None = None
        # The turn of each warp, if a seed chooses it. Warps with the same turn run together.
        self.turns: Lanes | None = None
        if self.options.seed is not None:
            random = np.random.default_rng((self.options.seed, _TURNS, first_block))
            warps = self.size // WARP
            few = warps <= _MOST_TURNS
            self.turns = (
                random.permutation(warps) if few else random.integers(_MOST_TURNS, size=warps)
            )

    def lanes(self) -> Lanes:
        """Return every lane that is a thread."""
        return np.flatnonzero(self.alive)

    def exit(self, lanes: Lanes) -> None:
        """Take `lanes` out for good."""
        # Lanes are never given to other threads: `place` names a thread after it has ended, too,
        # and a group's `full` stays false from here on.
        self.alive[lanes] = False
        self.alive_total -= lanes.shape[0]
        counts = np.bincount(lanes // self.width, minlength=self.blocks)
        self.alive_in_block -= counts
        if self.tensor is not None:
            ended = np.flatnonzero((counts > 0) & (self.alive_in_block == 0))
            self.tensor.require_free(int(lanes[0]), ended)

    @property
    def tensor_memory(self) -> TensorMemory:
        """The tensor memory of the blocks."""
        if self.tensor is None:
            self.tensor = TensorMemory(self.blocks)
        return self.tensor

    def place(self, lane: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Return the block and thread indices of a lane."""
        return thread_place(self.launch, lane + self.first_block * self.width, self.width)


class LaunchView(Protocol):
    """A launch, as its threads see it."""

    options: Options
    kernel: Any
    """The code that it can run."""
    number: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: Cluster
    threads: int
    """How many a block has."""
    dynamic_shared: int
    # The shared memory of a block, and the local memory of a thread.
    shared_bytes: int
    local_bytes: int
    params: Scratch
    """The parameters of the kernel."""
    memory: GlobalMemory
    read_only: ReadOnlyMemory | None
    grid_workspace: int
    """The address of a grid barrier's counter, null unless the launch is cooperative."""
    lacks_workspace: bool
    """Whether the kernel asked for it if it is null."""
    conditions: dict[int, int | None]
    """The conditions of the graph that the launch is in, which the kernel may set."""
    children: Children
    """The launches that its threads make."""
    texture_units: dict[int, Texture | Surface | None]
    """The textures and surfaces by handle; None: destroyed."""

    def cancel_cluster(self) -> tuple[int, int, int] | None:
        """Cancel the next cluster that has not started, and return its first block."""
        raise NotImplementedError

    def block_numbers(self, first: int, count: int) -> Lanes:
        """Return the numbers in the grid of some consecutive blocks in the order of the run."""
        raise NotImplementedError

    def position(self, instruction: Instruction) -> Position:
        """Describe where an instruction is, in the PTX and in the source."""
        raise NotImplementedError

    def heap_alloc(self, sizes: list[int], places: list[Related | None]) -> list[int]:
        """Allocate for malloc in a kernel; the launch may touch the blocks at once."""
        raise NotImplementedError

    def heap_free(self, address: int, place: Related) -> None:
        """Free a block of `heap_alloc`, which the launch may not touch any more."""


def thread_place(
    launch: LaunchView, thread: int, width: int
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return the block and thread indices of a lane of a launch whose blocks have `width` lanes."""
    number, index = divmod(thread, width)
    x, y, z = launch.cluster.block_of(launch.block_numbers(number, 1), launch.grid)
    return (int(x[0]), int(y[0]), int(z[0])), _index(index, launch.block)


def _index(flat: int, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    x, rest = flat % shape[0], flat // shape[0]
    return x, rest % shape[1], rest // shape[1]
