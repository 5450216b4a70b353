"""Count the code that launches execute, by the lines of their PTX."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.counting.argument_bytes import ArgumentBytes
from culaunch._emulator.counting.counts import Counts
from culaunch._emulator.counting.flops import flops_of
from culaunch._emulator.counting.kinds import kind_of
from culaunch._emulator.counting.transactions import (
    SECTOR,
    atomic_passes,
    requests,
    sectors,
    wavefronts,
)
from culaunch._emulator.decode.decoder import Decoder
from culaunch._emulator.machine.ends import Conditional, Switch

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Reader
    from culaunch._emulator.kernel_code import KernelCode
    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.state import Block, Group, Op
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes

# Past this many sectors of several accesses, the list of different ones is made smaller.
_MANY = 1 << 22


class Sectors:
    """A set of sectors of memory."""

    def __init__(self) -> None:
        self._parts: list[Lanes] = []
        self._size = 0

    def add(self, sectors: Lanes) -> None:
        """Add sectors."""
        self._parts.append(sectors)
        self._size += sectors.shape[0]
        if self._size > _MANY:
            self._unite()

    @property
    def bytes(self) -> int:
        """The size of all different ones."""
        self._unite()
        return SECTOR * self._size

    def _unite(self) -> None:
        if len(self._parts) > 1:
            self._parts = [np.unique(np.concatenate(self._parts))]
        self._size = sum(part.shape[0] for part in self._parts)


@dataclass
class KernelRecord:
    """The counts of a kernel."""

    kernel: KernelCode
    launches: set[int] = field(default_factory=set)
    lines: dict[int, tuple[Instruction, Counts]] = field(default_factory=dict)
    read: Sectors = field(default_factory=Sectors)
    written: Sectors = field(default_factory=Sectors)
    # By the number of the argument, and the address and the size of the array.
    arrays: dict[tuple[int, int, int], ArgumentBytes] = field(default_factory=dict)

    def counts(self, instruction: Instruction) -> Counts:
        """Return the numbers of an instruction's line."""
        return self.lines.setdefault(instruction.line, (instruction, Counts()))[1]


class Collector:
    """Watches launches, and counts for each line of PTX what is executed there."""

    def __init__(self) -> None:
        self.records: dict[int, KernelRecord] = {}
        self._blocks: dict[int, tuple[Block, _Watched]] = {}
        self._record: KernelRecord | None = None
        self._current: Counts | None = None
        # The arguments of the launch, and their bytes in the record of its kernel.
        self._arguments: list[tuple[int, int, int]] = []
        self._arrays: list[ArgumentBytes] = []
        self._number = 0

    def launch(self, arrays: list[tuple[int, int, int]]) -> None:
        """Note the arguments of a launch that are arrays."""
        self._arguments = arrays

    def begin(self, block: Block, group: Group) -> list[Op]:
        """Count the instructions of a block; return operations that say which one runs."""
        self._record = self._record_of(group.chunk)
        known = self._blocks.get(id(block))
        if known is None:
            known = self._blocks[id(block)] = (block, self._watch(block, group))
        watched = known[1]
        warps = requests(group.lanes)
        for counts, kind, is_guarded, (each, product) in watched.lines:
            counts.warps += warps
            counts.kinds[kind] = counts.kinds.get(kind, 0) + warps
            counts.threads += group.n
            if not is_guarded:
                counts.active += group.n
                counts.flops += each * group.n + product * warps
        return watched.ops

    def end(self, block: Block, group: Group) -> None:
        """Count the branch that ends a block."""
        assert self._record is not None
        last = block.instructions[-1]
        counts = self._record.counts(last)
        if isinstance(block.end, Conditional):
            chosen = np.broadcast_to(block.end.guard(group), (group.n,))
            counts.active += int(chosen.sum())
            self._branch(counts, group, chosen.astype(np.int64))
        elif isinstance(block.end, Switch):
            index = np.broadcast_to(block.end.index(group), (group.n,))
            self._branch(counts, group, index.astype(np.int64))

    def access(self, group: Group, space: str, address: Any, size: int, verb: str) -> None:
        """Count an access to memory by the running instruction."""
        counts, record = self._current, self._record
        if counts is None or record is None:
            return
        lanes = group.lanes
        address = np.broadcast_to(address, lanes.shape).astype(np.int64)
        if space == "local":
            counts.local_bytes += size * group.n
        elif space == "shared":
            counts.shared_requests += requests(lanes)
            counts.shared_bytes += size * group.n
            passes, ideal = wavefronts(lanes, address, size)
            counts.wavefronts += passes
            counts.ideal_wavefronts += ideal
        elif space == "global":
            touched, number, ideal = sectors(lanes, address, size)
            counts.global_requests += requests(lanes)
            counts.global_bytes += size * group.n
            counts.sectors += number
            counts.ideal_sectors += ideal
            for array in self._arrays:
                array.add(address, size, verb)
            if verb != "write":
                record.read.add(touched)
            if verb != "read":
                record.written.add(touched)
        if verb not in ("read", "write"):
            counts.atomic_requests += requests(lanes)
            counts.atomic_passes += atomic_passes(lanes, address)

    def _record_of(self, chunk: Chunk) -> KernelRecord:
        kernel = chunk.launch.kernel
        record = self.records.get(id(kernel))
        if record is None:
            record = self.records[id(kernel)] = KernelRecord(kernel)
        if chunk.launch.number != self._number:
            self._number = chunk.launch.number
            record.launches.add(self._number)
            # A launch by a kernel has none that are known.
            arguments, self._arguments = self._arguments, []
            self._arrays = [
                record.arrays.setdefault(key, ArgumentBytes.of(*key[1:])) for key in arguments
            ]
        return record

    def _branch(self, counts: Counts, group: Group, ways: Lanes) -> None:
        warp = group.lanes >> 5
        starts = np.flatnonzero(np.diff(warp, prepend=-1))
        low, high = np.minimum.reduceat(ways, starts), np.maximum.reduceat(ways, starts)
        counts.branches += starts.shape[0]
        counts.divergent += int((low != high).sum())

    def _watch(self, block: Block, group: Group) -> _Watched:
        assert self._record is not None
        decoder = Decoder(self._record.kernel, group.code)
        lines, ops = [], []
        for i, instruction in enumerate(block.instructions):
            counts, flops = self._record.counts(instruction), flops_of(instruction)
            lines.append((counts, kind_of(instruction), instruction.guard is not None, flops))
            if i < len(block.ops):
                guard = instruction.guard and decoder.read(instruction.guard, "pred")
                ops.append(self._noting(block.ops[i], counts, guard or None, flops))
        return _Watched(lines, ops)

    def _noting(self, op: Op, counts: Counts, guard: Reader | None, flops: tuple[int, int]) -> Op:
        each, product = flops

        def run(group: Group) -> None:
            if guard is not None:
                chosen = np.broadcast_to(guard(group), (group.n,))
                active = int(chosen.sum())
                counts.active += active
                counts.flops += each * active
                if product:
                    counts.flops += product * requests(group.lanes[chosen])
            self._current = counts
            try:
                op(group)
            finally:
                self._current = None

        return run


@dataclass
class _Watched:
    """A block, for repeated use: its lines in order, and its operations."""

    lines: list[tuple[Counts, str, bool, tuple[int, int]]]
    ops: list[Op]
