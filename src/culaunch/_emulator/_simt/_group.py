"""Threads that are at the same place: their lanes, registers and call stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from culaunch._emulator._memory._bytes import take
from culaunch._emulator._undefined import _taint
from culaunch._emulator._undefined._taint import NONE

if TYPE_CHECKING:
    from culaunch._emulator._simt._chunk import Chunk
    from culaunch._emulator._simt._code import Code
    from culaunch._emulator._types import Lanes
    from culaunch._emulator._undefined._taint import Taints

__all__ = ["Frame", "Group", "merge"]


class Frame(NamedTuple):
    """A function that waits for a call it made; it goes on at `block`."""

    code: Code
    regs: list[Lanes]
    block: int
    local_base: int
    results: tuple[tuple[int, int], ...]
    undefined: Taints = NONE


class Group:
    """Lanes of a chunk that execute together, in ascending order.

    Every register is an array with a value for each lane, or with a single value for all of them.
    Arrays are never written to once they are in a register: they may be shared. `undefined` has
    the registers with undefined bits.
    """

    __slots__ = (
        "_block_index",
        "_whole_warps",
        "block",
        "chunk",
        "code",
        "frames",
        "lanes",
        "local_base",
        "n",
        "regs",
        "spin",
        "spin_end",
        "undefined",
    )

    def __init__(
        self,
        chunk: Chunk,
        lanes: Lanes,
        code: Code,
        regs: list[Lanes],
        block: int = 0,
        frames: list[Frame] | None = None,
        local_base: int = 0,
    ) -> None:
        self.chunk = chunk
        self.lanes = lanes
        self.n: int = lanes.shape[0]
        self.code = code
        self.regs = regs
        self.block = block
        self.frames = frames or []
        self.local_base = local_base
        self.spin = 0
        self.spin_end = -1
        self.undefined: Taints = NONE
        self._block_index: Lanes | None = None
        self._whole_warps: bool | None = None

    @property
    def full(self) -> bool:
        """Whether every lane of the chunk is here, so that lane i is at index i."""
        return self.n == self.chunk.size

    @property
    def whole_warps(self) -> bool:
        """Whether all 32 lanes are here of every warp that has one here."""
        if self._whole_warps is None:
            lanes = self.lanes
            self._whole_warps = self.full or bool(
                self.n % 32 == 0
                and not (lanes[::32] % 32).any()
                and (lanes[31::32] - lanes[::32] == 31).all()
            )
        return bool(self._whole_warps)

    @property
    def block_index(self) -> Lanes:
        """The block of the chunk that each lane is in; a single value if there is one block."""
        if self._block_index is None:
            self._block_index = take(self.chunk.block_of_lane, None if self.full else self.lanes)
        return self._block_index

    @property
    def key(self) -> tuple[int, ...]:
        """Where the group is: the program counters of its frames, outermost first."""
        top = self.code.base + self.block
        if not self.frames:
            return (top,)
        # A caller stands at its call, which is before the block that it returns to.
        return (*(f.code.base + f.block - 1 for f in self.frames), top)

    def lane_at(self, index: int) -> int:
        """Return the chunk's lane that is at `index` of the group."""
        return int(self.lanes[index if index < self.n else 0])

    def with_registers(self, regs: list[Lanes]) -> Group:
        """Return a copy with other registers, of which all bits are taken as defined."""
        return Group(
            self.chunk, self.lanes, self.code, regs, self.block, self.frames, self.local_base
        )

    def narrow(self, index: Lanes, slots: tuple[int, ...] = ()) -> Group:
        """Return some of the lanes, with only the registers `slots`, to run one instruction."""
        regs = list(self.code.zeros)
        for slot in slots:
            regs[slot] = take(self.regs[slot], index)
        return Group(
            self.chunk, self.lanes[index], self.code, regs, self.block, self.frames, self.local_base
        )

    def split(self, index: Lanes, block: int) -> Group:
        """Return some of the lanes, going on at `block`; registers dead there are dropped."""
        regs = list(self.code.zeros)
        for slot in self.code.blocks[block].live_in:
            regs[slot] = take(self.regs[slot], index)
        frames = [_narrow_frame(frame, index) for frame in self.frames]
        part = Group(self.chunk, self.lanes[index], self.code, regs, block, frames, self.local_base)
        part.spin, part.spin_end = self.spin, self.spin_end
        if self.undefined:
            live_in = self.code.blocks[block].live_in
            part.undefined = _taint.narrow(self.undefined, index, live_in)
        return part


def _narrow_frame(frame: Frame, index: Lanes) -> Frame:
    regs = list(frame.code.zeros)
    for slot in frame.code.blocks[frame.block].live_in:
        regs[slot] = take(frame.regs[slot], index)
    if not frame.undefined:
        return frame._replace(regs=regs)
    undefined = _taint.narrow(frame.undefined, index, frame.code.blocks[frame.block].live_in)
    return frame._replace(regs=regs, undefined=undefined)


def merge(parts: list[Group]) -> Group:
    """Join groups that are at the same place into one, lanes in ascending order."""
    first = parts[0]
    if len(parts) == 1:
        return first
    lanes = np.concatenate([part.lanes for part in parts])
    order = np.argsort(lanes, kind="stable")
    sizes = [part.n for part in parts]
    regs = _merge_registers(first.code, first.block, [part.regs for part in parts], sizes, order)
    frames = []
    for depth, frame in enumerate(first.frames):
        kept = [part.frames[depth].regs for part in parts]
        merged = _merge_registers(frame.code, frame.block, kept, sizes, order)
        taints = [part.frames[depth].undefined for part in parts]
        undefined = _merge_taints(frame.code, frame.block, taints, sizes, order)
        frames.append(frame._replace(regs=merged, undefined=undefined))
    out = Group(first.chunk, lanes[order], first.code, regs, first.block, frames, first.local_base)
    taints = [part.undefined for part in parts]
    out.undefined = _merge_taints(first.code, first.block, taints, sizes, order)
    slowest = min(parts, key=lambda part: part.spin)
    out.spin, out.spin_end = slowest.spin, slowest.spin_end
    return out


def _merge_taints(
    code: Code, block: int, taints: list[Taints], sizes: list[int], order: Lanes
) -> Taints:
    if not any(taints):
        return NONE
    return _taint.merge(taints, sizes, order, code.blocks[block].live_in)


def _merge_registers(
    code: Code, block: int, files: list[list[Lanes]], sizes: list[int], order: Lanes
) -> list[Lanes]:
    regs = list(code.zeros)
    for slot in code.blocks[block].live_in:
        values = [file[slot] for file in files]
        first = values[0]
        if all(value is first for value in values) and first.shape[0] == 1:
            regs[slot] = first
            continue
        if all(value.shape[0] == 1 for value in values):
            same = all(value.tobytes() == first.tobytes() for value in values)
            if same:
                regs[slot] = first
                continue
        spread = [
            value if value.shape[0] == size else np.broadcast_to(value, (size, *value.shape[1:]))
            for value, size in zip(values, sizes, strict=True)
        ]
        regs[slot] = np.concatenate(spread)[order]
    return regs
