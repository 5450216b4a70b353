"""Calls of device functions, direct and through pointers, and of the ones built in."""

# All decoders, and all ends of a block, have one signature each.
# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from culaunch._emulator.fault import HARDWARE_STACK_ERROR, ILLEGAL_INSTRUCTION, Fault
from culaunch._emulator.machine.state import Code, End, Frame, Group
from culaunch._emulator.machine.taint import NONE
from culaunch._emulator.types import Lanes

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Runner
    from culaunch._emulator.machine.taint import Taints

Reader = Callable[[Group], Lanes]
# Far deeper than a GPU's stack allows. Still, an endless recursion is reported quickly, before its
# frames fill the host's memory.
_MAX_DEPTH = 4096


class Argument(NamedTuple):
    """An argument of a function: how to read it, and its slot, or -1."""

    read: Reader
    slot: int


@dataclass(eq=False, kw_only=True)
class CallEnd(End):
    """A call of a function."""

    arguments: list[Argument]
    results: tuple[int, ...]
    """The slots that the results go to."""
    following: int
    """The block to return to."""

    def __post_init__(self) -> None:
        self.successors = (self.following,)


@dataclass(eq=False, kw_only=True)
class Call(CallEnd):
    """Call one function."""

    callee: Callable[[], Code]
    """Returns the code; it is decoded at the first call."""

    def run(self, group: Group, runner: Runner) -> int | None:
        """Push a frame and continue at the callee's first block."""
        enter(group, self.callee(), self.arguments, self.results, self.following)
        return 0


@dataclass(eq=False, kw_only=True)
class IndirectCall(CallEnd):
    """Call the function at each lane's address."""

    target: Reader
    find: Callable[[int], Callable[[], Code] | None]

    def run(self, group: Group, runner: Runner) -> int | None:
        """Split the group by callee."""
        # The address may be computed by each thread, as with a table of functions or a virtual
        # method.
        targets = self.target(group)
        if targets.shape[0] == 1 or (targets == targets[0]).all():
            self._enter(group, int(targets[0]))
            return 0
        # Every callee runs by itself; the groups meet again behind the call.
        for target in np.unique(targets).tolist():
            # The registers that are live at the call include the arguments, because a call is a
            # block of its own.
            part = group.split(np.flatnonzero(targets == target), group.block)
            self._enter(part, target)
            part.block = 0
            runner.ready(part)
        return None

    def _enter(self, group: Group, target: int) -> None:
        callee = self.find(target)
        if callee is None:
            raise Fault(
                ILLEGAL_INSTRUCTION,
                f"call of {target:#x}, which is not the address of a function",
                lane=group.lane_at(0),
            )
        enter(group, callee(), self.arguments, self.results, self.following)


def enter(
    group: Group, callee: Code, arguments: list[Argument], results: tuple[int, ...], following: int
) -> None:
    """Make `callee` the top frame of `group`."""
    if len(group.frames) >= _MAX_DEPTH:
        raise Fault(
            HARDWARE_STACK_ERROR,
            f"calls are nested deeper than {_MAX_DEPTH} levels",
            lane=group.lane_at(0),
        )
    # A function's slots begin with its results, followed by its parameters, here and in `Return`.
    function = callee.function
    values = [argument.read(group) for argument in arguments]
    # The callee begins with registers that hold zeros, which the groups share until they are
    # written: an array in a register is never changed in place.
    regs = list(callee.zeros)
    first = len(function.returns)
    for i, value in enumerate(values[: len(function.params)]):
        # A caller may declare an argument smaller than the callee's parameter.
        regs[first + i] = _fit(value, callee.zeros[first + i])
    caller = group.code
    pairs = tuple(enumerate(results[:first]))
    # The caller's registers are kept unchanged, and restored by `Return`. Liveness has already
    # dropped the ones that are not read after the call.
    frame = Frame(caller, group.regs, following, group.local_base, pairs, group.undefined)
    if group.undefined:
        group.undefined = _pass_on(group.undefined, arguments, callee)
    # A new list: parts of the group that make other calls share the old one.
    group.frames = [*group.frames, frame]
    # Every frame has its own variables in the thread's local memory, as on a stack.
    group.local_base += caller.local_bytes
    group.chunk.local.grow(group.local_base + callee.local_bytes)
    group.code, group.regs = callee, regs


def _pass_on(given: Taints, arguments: list[Argument], callee: Code) -> Taints:
    """Return the undefined bits of the callee's parameters."""
    taints = {}
    first = len(callee.function.returns)
    # Only a register can be undefined; a constant has the slot -1, which is in no dict.
    for i, argument in enumerate(arguments[: len(callee.function.params)]):
        taint = given.get(argument.slot)
        if taint is not None:
            bits = _fit(taint.bits, callee.zeros[first + i])
            taints[first + i] = taint._replace(bits=bits)
    return taints or NONE


def _fit(value: Lanes, like: Lanes) -> Lanes:
    # Only parameters of several bytes (.param .b8 name[n]) are rows of bytes; all else has the
    # width that the declaration says.
    if value.ndim < 2 or value.shape[1] >= like.shape[1]:
        return value
    out = np.zeros((value.shape[0], like.shape[1]), value.dtype)
    out[:, : value.shape[1]] = value
    return out
