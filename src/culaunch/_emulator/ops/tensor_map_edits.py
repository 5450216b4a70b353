"""Tensor maps that kernels make: tensormap.replace, and the copy of a finished map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import decodes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.fault import NOT_SUPPORTED, Fault
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import store
from culaunch._emulator.memory.how import GRID, PLAIN
from culaunch._emulator.memory.tensor_map import FIELDS, MAGIC, MAP_BYTES
from culaunch._emulator.ops.bulk_units import UNIT, each_unit, read_units, write_units
from culaunch._emulator.ops.memory import space_of
from culaunch._emulator.ptx.syntax import Immediate

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes

# The stored numbers of fields, from those of the PTX ISA ("tensormap.replace").
_KINDS = np.array([0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12], np.uint64)  # a CUtensorMapDataType
_MOST = {"elemtype": 12, "interleave_layout": 0, "swizzle_mode": 3, "swizzle_atomicity": 0}
# A rank is given as one less, and an extent of 2^32 is stored as one less.
_PLUS = {"rank": 1, "global_dim": -1}


@decodes("tensormap", results=0, effects=True, waits=False, undefined=Flow.MUST_BE_DEFINED)
def _tensormap(decoder: Decoder, instruction: Instruction) -> Op:
    if instruction.mods[0] == "cp_fenceproxy":
        return _copy(decoder, instruction)
    name = instruction.mods[2]
    if instruction.mods[:2] != ("replace", "tile") or (name not in FIELDS and name not in _MOST):
        raise Unsupported
    if name == "global_stride" and decoder.symbols.syntax.version < (8, 6):
        raise Unsupported("before PTX 8.6, compilers differ in the unit of a stride")
    place, *ordinal, value = instruction.operands
    number, plus = 0, np.uint64(_PLUS.get(name, 0) % 2**64)
    if ordinal:
        if not isinstance(ordinal[0], Immediate):
            raise Unsupported("an axis must be a constant")
        number = ordinal[0].bits
    locate = LOCATORS[space_of(instruction)]
    address = decoder.address(place)
    read = decoder.read(value, "b64" if "b64" in instruction.mods else "b32")

    def run(group: Group) -> None:
        values = read(group).astype(np.uint64)
        _check(group, name, values)
        if name not in FIELDS:
            return
        first, size = FIELDS[name]
        at = first + number * size
        stored = _KINDS[values] if name == "elemtype" else values + plus
        if name == "global_stride":
            stored &= ~np.uint64(15)  # a map has no room for these bits
        start = address(group)
        magic: Lanes = np.full(1, MAGIC)
        for offset, width, words in ((0, 4, magic), (at, size, stored)):
            pieces = locate(group, start + start.dtype.type(offset), width, "write")
            store(group, pieces, width, [words.astype(f"u{width}")])

    return run


def _check(group: Group, name: str, values: Lanes) -> None:
    most = _MOST.get(name)
    if most is not None and values.max() > most:
        lane = int(values.argmax())
        reason = f"a tensor map with {name} {int(values[lane])} (at most {most})"
        raise Fault(NOT_SUPPORTED, f"{reason} is not emulated", lane=group.lane_at(lane))


def _copy(decoder: Decoder, instruction: Instruction) -> Op:
    """Decode the copy of a map to global memory, and the release with it: one for the warp."""
    to, where = (decoder.address(one) for one in instruction.operands[:2])

    count = MAP_BYTES // UNIT

    def run(group: Group) -> None:
        first = np.unique(group.lanes // 32, return_index=True)[1]
        part = each_unit(group, np.repeat(first, count))
        source, target = (_units(group, one(group), first) for one in (where, to))
        words = read_units(part, "shared", source, 8, PLAIN)
        write_units(part, "global", target, words, None, PLAIN)
        if group.chunk.races is not None:
            group.chunk.races.order.fence(group.lanes, GRID)

    return run


def _units(group: Group, addresses: Lanes, lanes: Lanes) -> Lanes:
    """Return the addresses of all units of the maps of these lanes."""
    starts = np.broadcast_to(addresses, (group.n,))[lanes, None]
    units: Lanes = starts + np.arange(0, MAP_BYTES, UNIT).astype(starts.dtype)
    return units.reshape(-1)
