"""clusterlaunchcontrol: a running cluster takes over the work of one that has not started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import decodes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.memory.how import COUNTED
from culaunch._emulator.ops.bulk_units import UNIT, to_rank, write_units
from culaunch._emulator.ops.mbarrier import complete_bytes
from culaunch._emulator.ptx.syntax import Instruction, Register

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.decode.undefined_bits import BitFlow
    from culaunch._emulator.machine.state import Group, Op

# The layout of a response is ours: x and y of the cluster's first block, then z and whether it is
# canceled.
_HIGH = np.uint64(32)
_SIZE = np.array([UNIT], np.uint64)


def _results(instruction: Instruction) -> int:
    return 0 if instruction.mods[0] == "try_cancel" else 1


def _undefined(instruction: Instruction) -> BitFlow:
    return Flow.MUST_BE_DEFINED if instruction.mods[0] == "try_cancel" else Flow.COMPUTES


@decodes("clusterlaunchcontrol", results=_results, effects=True, waits=False, undefined=_undefined)
def _cluster_launch_control(decoder: Decoder, instruction: Instruction) -> Op:
    if instruction.mods[0] == "try_cancel":
        return _try_cancel(decoder, instruction)
    if instruction.mods[0] == "query_cancel":
        return _query_cancel(decoder, instruction)
    raise Unsupported


def _try_cancel(decoder: Decoder, instruction: Instruction) -> Op:
    response, barrier = (decoder.address(one) for one in instruction.operands)
    everywhere = "multicast::cluster::all" in instruction.mods

    def run(group: Group) -> None:
        launch = group.chunk.launch
        places = np.broadcast_to(response(group), (group.n,))
        barriers = np.broadcast_to(barrier(group), (group.n,))
        for lane in range(group.n):
            part = group.narrow(np.array([lane]))
            first = launch.cancel_cluster()
            x, y, z = first or (0, 0, 0)
            words = [x | y << 32, z | (first is not None) << 32]
            values = [np.array([word], np.uint64) for word in words]
            for rank in range(launch.cluster.size) if everywhere else (None,):
                place = to_rank(places[lane : lane + 1], rank)
                write_units(part, "shared", place, values, None, COUNTED)
                arrived = to_rank(barriers[lane : lane + 1], rank)
                complete_bytes(part, arrived, "shared", _SIZE)

    return run


def _query_cancel(decoder: Decoder, instruction: Instruction) -> Op:
    target, response = instruction.operands
    if not isinstance(response, Register):
        raise Unsupported
    slot, form = response.slot, instruction.mods[1]
    if form == "is_canceled":
        put = decoder.write(target, "pred")
        return lambda g: put(g, g.regs[slot][:, 1] >> _HIGH != 0)
    # The fourth element of a vector has no meaning.
    targets = decoder.vector(target)[:3] if form == "get_first_ctaid" else [target]
    axes = "xyz" if form == "get_first_ctaid" else form[-1]
    puts = [(axes[i], decoder.write(one, "b32")) for i, one in enumerate(targets)]

    def run(group: Group) -> None:
        words = group.regs[slot]
        for axis, put in puts:
            word = words[:, "xyz".index(axis) // 2]
            put(group, (word >> _HIGH if axis == "y" else word).astype(np.uint32))

    return run
