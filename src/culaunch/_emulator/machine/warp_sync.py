"""Let the lanes of a warp wait for each other: shfl.sync, vote.sync, bar.warp.sync and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from culaunch._emulator.fault import LAUNCH_FAILED, Fault
from culaunch._emulator.machine.merge import merge

if TYPE_CHECKING:
    from culaunch._emulator.machine.races import Races
    from culaunch._emulator.machine.state import Block, Group, Runner
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes

# The mask that compilers give nearly always: all 32 lanes of the warp.
_EVERY_LANE = 0xFFFFFFFF


class WarpSync:
    """Groups that wait until every lane that their instruction names has come to it.

    A lane that has exited is not waited for, as on the hardware.

    Attributes
    ----------
    parked : dict
        The groups that wait, by their place. One that comes to the same place joins them.
    """

    def __init__(self, runner: Runner, races: Races | None) -> None:
        self.runner = runner
        self.races = races
        self.chunk = runner.chunk
        self.parked: dict[tuple[int, ...], Group] = {}

    def admit(self, group: Group, block: Block) -> Group | None:
        """Return the lanes that can continue, which may be more than arrived, and park the rest."""
        # Only the arriving lanes are checked, once each: waiting lanes were checked when they
        # arrived.
        if block.names_lanes:
            self._check_named(group, block)
        # All live lanes are here, so none can be missing.
        if group.n == self.chunk.alive_total:
            return group
        if self.parked:
            waiting = self.parked.pop(group.key, None)
            if waiting is not None:
                group = merge([waiting, group])
        # A warp whose named lanes are all here continues, regardless of other warps.
        complete = self._complete(group, block)
        if complete.all():
            return group
        # Split the group even if no lane can continue. The parked part then has only the registers
        # that are live here, and only its own lanes.
        index = np.flatnonzero(~complete)
        part = group.split(index, group.block)
        self.parked[part.key] = part
        if index.shape[0] == group.n:
            return None
        return group.split(np.flatnonzero(complete), group.block)

    def retry(self) -> None:
        """Release parked groups whose missing lanes have exited. Called when nothing else runs."""
        # An exit does not search for groups that wait for its lanes. This finds them when nothing
        # else can run.
        stays = True
        for key, group in list(self.parked.items()):
            # A part of the group may be able to go on now: `admit` will sort that out when its turn
            # comes.
            block = group.code.blocks[group.block]
            if self._complete(group, block).any():
                del self.parked[key]
                self.runner.ready(group)
                stays = False
        # Only if no lane could continue: usually all lanes wait at the same barrier.
        if self.parked and stays:
            self._release_warp_barriers()

    def report_stuck(self) -> None:
        """Raise the fault for lanes that wait for others that never come."""
        for group in self.parked.values():
            block = group.code.blocks[group.block]
            instruction = block.instructions[0]
            missing = self._missing(group, block)
            lane = int(np.flatnonzero(missing)[0])
            self._blame(
                group,
                instruction,
                lane,
                "names lanes of the warp that never execute it (mask of the missing ones "
                f"{int(missing[lane]):#010x})",
            )

    def _complete(self, group: Group, block: Block) -> Lanes:
        complete: Lanes = self._missing(group, block) == 0
        return complete

    def _check_named(self, group: Group, block: Block) -> None:
        """Report a lane that executes an instruction whose mask does not name it."""
        assert block.sync is not None
        masks = block.sync(group)
        if masks.shape[0] == 1 and masks[0] == _EVERY_LANE:
            return
        own = lane_bits(group)
        named = np.broadcast_to(masks, own.shape)
        lacking = named & own == 0
        if lacking.any():
            index = int(np.flatnonzero(lacking)[0])
            instruction = block.instructions[0]
            self._blame(
                group,
                instruction,
                index,
                f"is executed by lane {group.lane_at(index) % 32} of the warp, which its mask "
                f"{int(named[index]):#010x} does not name",
            )

    def _blame(self, group: Group, instruction: Instruction, lane: int, what: str) -> NoReturn:
        """Raise the fault for one lane of a group."""
        fault = Fault(
            LAUNCH_FAILED,
            f"{instruction.opcode} {what}",
            kind="warp-mask",
            lane=group.lane_at(lane),
        )
        self.runner.locate(fault, instruction)
        raise fault

    def _missing(self, group: Group, block: Block) -> Lanes:
        assert block.sync is not None
        warp = group.lanes // 32
        # For each warp the lanes that are alive and elsewhere; for each lane those of them that its
        # mask names.
        absent = warp_bits(self.chunk.alive) & ~_present(group)
        missing: Lanes = np.broadcast_to(block.sync(group), group.lanes.shape) & absent[warp]
        return missing

    def _release_warp_barriers(self) -> None:
        """Let bar.warp.sync at different places meet: only the lanes count, not the place."""
        # PTX has bar.warp.sync wait for lanes, wherever in the code they execute one. So two
        # branches may each have theirs; shfl, vote and the others must be the same instruction for
        # all.
        barriers = [
            (key, group)
            for key, group in self.parked.items()
            if group.code.blocks[group.block].instructions[0].name == "bar"
        ]
        present = np.zeros(self.chunk.size // 32, np.uint32)
        for _, group in barriers:
            present |= _present(group)
        # A live lane that is not parked at a barrier like this can still come, or never does: a
        # group that names one of those stays.
        absent = warp_bits(self.chunk.alive) & ~present
        lanes, masks = [], []
        for key, group in barriers:
            sync = group.code.blocks[group.block].sync
            assert sync is not None
            if not (sync(group) & absent[group.lanes // 32]).any():
                lanes.append(group.lanes)
                masks.append(np.broadcast_to(sync(group), group.lanes.shape))
                del self.parked[key]
                # The block contains only the barrier.
                group.block += 1
                self.runner.ready(group)
        if lanes and self.races is not None:
            self.races.order.meet(np.concatenate(lanes), np.concatenate(masks))


def lane_bits(group: Group) -> Lanes:
    """Return, for each lane, the mask that names only that lane."""
    bits: Lanes = np.uint32(1) << (group.lanes & 31).astype(np.uint32)
    return bits


def warp_bits(flags: Lanes) -> Lanes:
    """Pack a flag for each lane of a chunk into a 32-bit mask for each warp."""
    return np.packbits(flags, bitorder="little").view(np.uint32)


def _present(group: Group) -> Lanes:
    flags = np.zeros(group.chunk.size, bool)
    flags[group.lanes] = True
    return warp_bits(flags)
