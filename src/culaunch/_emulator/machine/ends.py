"""The ways a block can end, except by a barrier or a call."""

# All decoders, and all ends of a block, have one signature each.
# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.machine.state import End, Frame, Group, Op
from culaunch._emulator.machine.taint import NONE
from culaunch._emulator.types import Lanes

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Runner

Reader = Callable[[Group], Lanes]


class Jump(End):
    """Continue at another block: a branch, or the next one."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.successors = (target,)

    def run(self, group: Group, runner: Runner) -> int | None:
        """Return the target."""
        return self.target


class Conditional(End):
    """End one way where a guard is true, and continue at the next block elsewhere."""

    def __init__(self, guard: Reader, taken: End, following: int) -> None:
        self.guard = guard
        self.taken = taken
        self.following = following
        self.successors = (*taken.successors, following)

    def run(self, group: Group, runner: Runner) -> int | None:
        """Split the group if its lanes disagree."""
        # A uniform guard has one value. Lanes with values of their own may still agree: then the
        # group continues as a whole, and nothing is copied.
        chosen = self.guard(group)
        if chosen.shape[0] == 1:
            return self.taken.run(group, runner) if chosen[0] else self.following
        taken = np.flatnonzero(chosen)
        if taken.shape[0] == 0:
            return self.following
        if taken.shape[0] == group.n:
            return self.taken.run(group, runner)
        # The lanes disagree. Both parts are handed to the scheduler, which takes the one with the
        # lower program counter; the group itself is used no more.
        rest = np.flatnonzero(~chosen)
        runner.go(group.split(rest, self.following), group.block, self.following)
        if isinstance(self.taken, Jump):
            target = self.taken.target
            runner.go(group.split(taken, target), group.block, target)
            return None
        # An exit or a return, which is not a jump, is executed now by its lanes. It is split at its
        # own block, where the inputs of the end (a call's arguments, the index of a switch) are
        # live.
        part = group.split(taken, group.block)
        following = self.taken.run(part, runner)
        if following is None:
            return None
        if part.code is group.code:
            runner.go(part, group.block, following)
        else:
            # A call: the part is in another function now, and jumps nowhere in this one.
            part.block = following
            runner.ready(part)
        return None


class Switch(End):
    """brx.idx: each lane goes to the target that its index names."""

    def __init__(self, index: Reader, targets: tuple[int, ...], uses: tuple[int, ...] = ()) -> None:
        self.index = index
        self.targets = targets
        self.successors = targets
        self.uses = uses

    def run(self, group: Group, runner: Runner) -> int | None:
        """Split the group by target."""
        # An index past the end is undefined, so any target will do.
        index = np.minimum(self.index(group), np.uint32(len(self.targets) - 1))
        targets = np.array(self.targets)[index]
        if targets.shape[0] == 1 or (targets == targets[0]).all():
            return int(targets[0])
        for target in np.unique(targets).tolist():
            part = group.split(np.flatnonzero(targets == target), target)
            runner.go(part, group.block, target)
        return None


class Exit(End):
    """The thread ends."""

    def run(self, group: Group, runner: Runner) -> int | None:
        """End the threads."""
        runner.exit(group)
        return None


class NotEmulated(End):
    """An instruction that is not emulated."""

    def __init__(self, refuse: Op) -> None:
        self.refuse = refuse

    def run(self, group: Group, runner: Runner) -> int | None:
        """Raise the fault."""
        self.refuse(group)
        return None


class Return(End):
    """Go back to the caller; in a kernel, end."""

    def run(self, group: Group, runner: Runner) -> int | None:
        """Take the callee's results to the caller's registers."""
        if not group.frames:
            runner.exit(group)
            return None
        frame = group.frames[-1]
        # A copy: other groups that made the same call together share the caller's list.
        regs = list(frame.regs)
        # The callee's results are its first slots; the pairs were made by the call, which knows
        # both sides.
        for there, here in frame.results:
            regs[here] = group.regs[there]
        if group.undefined or frame.undefined:
            _hand_back(group, frame)
        group.frames = group.frames[:-1]
        group.code, group.regs, group.local_base = frame.code, regs, frame.local_base
        group.block = frame.block
        # Lanes that returned from elsewhere in the callee join here.
        runner.ready(group)
        return None


def _hand_back(group: Group, frame: Frame) -> None:
    """Make the undefined bits of the caller's registers and the callee's results the group's."""
    taints = dict(frame.undefined)
    for there, here in frame.results:
        # A result replaces the register's old value. Only the callee decides whether it is
        # undefined.
        taint = group.undefined.get(there)
        if taint is not None:
            taints[here] = taint
        else:
            taints.pop(here, None)
    group.undefined = taints or NONE
