"""Turn an instruction into an operation: the result of its decoder, under its guard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import definition
from culaunch._emulator.decode.liveness import reads_and_writes
from culaunch._emulator.fault import NOT_SUPPORTED, Fault
from culaunch._emulator.outside import comes_from_outside
from culaunch._emulator.ptx.syntax import Instruction

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op


def decode(decoder: Decoder, instruction: Instruction) -> Op:
    """Return the operation of an instruction that is not a branch."""
    try:
        op = bind(decoder, instruction)
    except Exception as error:  # noqa: BLE001 - which form a decoder stumbles over is not known
        return refuse(decoder, instruction, error)
    if instruction.guard is None:
        return op
    return _guarded(decoder, instruction, op)


def bind(decoder: Decoder, instruction: Instruction) -> Op:
    """Return the operation of an instruction as if it had no guard."""
    build = definition(instruction).decode
    if build is None:
        raise Unsupported
    return build(decoder, instruction)


def _guarded(decoder: Decoder, instruction: Instruction, op: Op) -> Op:
    """Return an operation that takes effect in the lanes whose guard is true.

    An instruction with effects runs in a group of only those lanes. A pure computation runs in all
    lanes, and its results are kept where the guard is true: that is cheaper than making a group.
    Nothing goes wrong in the other lanes, since no computation can fail.
    """
    assert instruction.guard is not None
    guard = decoder.read(instruction.guard, "pred")
    # The registers that it reads and writes when its guard is true, without liveness's additions
    # for the guard.
    plain = Instruction(instruction.name, instruction.mods, instruction.operands, instruction.line)
    reads, writes = reads_and_writes(plain, decoder.code.carry)
    # A narrowed group has only these registers; a parameter is changed in place, so read.
    slots = tuple({*reads, *writes})
    effects = definition(instruction).effects

    def run(group: Group) -> None:
        chosen = guard(group)
        # One value for all lanes: the guard does not depend on the thread.
        if chosen.shape[0] == 1:
            if chosen[0]:
                op(group)
            return
        # Memory must see only the selected lanes: another lane's address may be nonsense.
        if effects:
            index = np.flatnonzero(chosen)
            if index.shape[0] == group.n:
                op(group)
            elif index.shape[0]:
                part = group.narrow(index, slots)
                # Other registers than `writes` are left behind with the part: it is made for one
                # instruction.
                op(part)
                for slot in writes:
                    # Other groups may share the old array: leave it unchanged.
                    old = group.regs[slot]
                    new: Any = np.empty((group.n, *old.shape[1:]), old.dtype)
                    new[...] = old
                    new[index] = part.regs[slot]
                    group.regs[slot] = new
            return
        # It has no effects: run it in all lanes, and restore its results in the others.
        before = [group.regs[slot] for slot in writes]
        op(group)
        for slot, old in zip(writes, before, strict=True):
            group.regs[slot] = np.where(chosen, group.regs[slot], old)

    return run


def refuse(decoder: Decoder, instruction: Instruction, error: Exception) -> Op:
    """Return an operation that reports, when it is reached, that `instruction` is not emulated.

    The report names all other instructions of the function that are not emulated, too.

    An `error` other than `Unsupported` means that the decoder does not know this form and failed on
    it, or that the decoder has a defect. The message contains the error, which is also the fault's
    cause. An exception of other code, such as a signal's handler, is raised again.
    """
    if not isinstance(error, Unsupported) and comes_from_outside(error):
        raise error
    what = f"the instruction {instruction.opcode} is not emulated"
    if isinstance(error, Unsupported):
        message = f"{what}: {error}" if str(error) else what
    else:
        message = f"{what} in this form ({type(error).__name__} in its decoder: {error})"

    refused = decoder.code.refused
    refused.setdefault(instruction.opcode, instruction.line)

    def run(group: Group) -> None:
        others = [f"{name} (PTX line {n})" for name, n in refused.items()
                  if name != instruction.opcode]  # fmt: skip
        more = f"; neither are, in the same function: {', '.join(others)}" if others else ""
        raise Fault(NOT_SUPPORTED, message + more, lane=group.lane_at(0)) from error

    return run
