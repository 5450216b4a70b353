"""Exchange between the lanes of a warp: shfl, vote, match, redux, activemask, elect."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator import numerics
from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import ALL_LANES, decodes
from culaunch._emulator.decode.undefined_bits import Flow, Moves
from culaunch._emulator.machine.rows import (
    from_rows,
    from_warps,
    members,
    pack_flags,
    to_rows,
)
from culaunch._emulator.memory.undefined_bytes import Read
from culaunch._emulator.ptx.syntax import Instruction, Operand, Pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.decode.undefined_bits import BitFlow
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.types import Lanes

_LANE = np.arange(32, dtype=np.int64)[None, :]


def _named_lanes(instruction: Instruction) -> Operand | None:
    """Return the mask operand of forms whose lanes wait for each other."""
    return instruction.operands[-1] if "sync" in instruction.mods else None


_by_mask = functools.partial(decodes, results=1, effects=True, waits=False, warp_mask=_named_lanes)


@_by_mask("shfl", undefined=Moves(controls=(2, 3, 4), across_lanes=True))
def _shfl(decoder: Decoder, instruction: Instruction) -> Op:
    target = instruction.operands[0]
    mode = next(word for word in instruction.mods if word in ("up", "down", "bfly", "idx"))
    first = target.first if isinstance(target, Pair) else target
    put = decoder.write(first, "b32")
    put_valid = decoder.write(target.second, "pred") if isinstance(target, Pair) else None
    value, distance, clamp = (decoder.read(op, "b32") for op in instruction.operands[1:4])
    opcode, named = instruction.opcode, decoder.read(_named_lanes(instruction) or ALL_LANES, "b32")

    def run(group: Group) -> None:
        rows = to_rows(group, value(group))
        b = _operand_rows(group, distance(group)) & 31
        c = _operand_rows(group, clamp(group))
        # Operand c has the limit in its lowest bits, and the mask of segments above (PTX ISA,
        # "shfl"). It splits a warp of 32 into several smaller ones.
        segment, limit = c >> 8 & 31, c & 31
        # The last (or first) lane of each lane's segment, like the hardware.
        bound = (_LANE & segment) | (limit & ~segment)
        if mode == "up":
            source = _LANE - b
            valid = source >= bound
        elif mode == "down":
            source = _LANE + b
            valid = source <= bound
        elif mode == "bfly":
            source = _LANE ^ b
            valid = source <= bound
        else:
            source = (_LANE & segment) | (b & ~segment)
            valid = source <= bound
        # A lane whose partner is out of range keeps its own value.
        source = np.where(valid, source, _LANE)
        masks = named(group)
        # Every lane is present and named, so no lane reads from a missing one.
        if not (group.whole_warps and masks.shape[0] == 1 and masks[0] == ALL_LANES.bits):
            _note_strangers(group, source, masks, opcode)
        # The same permutation in every warp: one gather of columns.
        if source.shape[0] == 1:
            moved = rows.take(source[0], axis=1)
            valid = np.broadcast_to(valid, moved.shape)
        else:
            moved = np.take_along_axis(rows, source, axis=1)
        put(group, from_rows(group, moved))
        if put_valid is not None:
            put_valid(group, from_rows(group, valid))

    return run


def _vote_flow(instruction: Instruction) -> BitFlow:
    # All that agree: which value they agree on is not a bit of the result.
    return Flow.MIXES_LANES if "uni" in instruction.mods else Flow.VOTES


@_by_mask("vote", undefined=_vote_flow)
def _vote(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, instruction.operands
    mode = next(word for word in mods if word in ("all", "any", "uni", "ballot"))
    put = decoder.write(operands[0], "b32" if mode == "ballot" else "pred")
    predicate = decoder.read(operands[1], "pred")
    mask = decoder.read(operands[2], "b32") if "sync" in mods else None

    def run(group: Group) -> None:
        # Lanes outside the mask, and absent lanes, do not vote.
        voters = members(group)
        votes = from_warps(group, pack_flags(to_rows(group, predicate(group))))
        if mask is not None:
            voters, votes = voters & mask(group), votes & mask(group)
        if mode == "ballot":
            put(group, votes)
        elif mode == "any":
            put(group, votes != 0)
        elif mode == "all":
            put(group, votes == voters)
        else:
            put(group, (votes == voters) | (votes == 0))

    return run


@decodes("activemask", results=1, effects=True, waits=False, undefined=Flow.IGNORES)
def _activemask(decoder: Decoder, instruction: Instruction) -> Op:
    put = decoder.write(instruction.operands[0], "b32")
    return lambda g: put(g, members(g))


@_by_mask("elect", undefined=Flow.MIXES_LANES)
def _elect(decoder: Decoder, instruction: Instruction) -> Op:
    target = instruction.operands[0]
    if not isinstance(target, Pair):
        raise Unsupported
    put_lane = decoder.write(target.first, "b32")
    put_leader = decoder.write(target.second, "pred")
    mask = decoder.read(instruction.operands[1], "b32")

    def run(group: Group) -> None:
        present = mask(group) & members(group)
        # The lowest lane of those that are here is a leader that all of them agree on.
        lowest = present & (~present + np.uint32(1))
        leader = np.log2(lowest.astype(np.float64)).astype(np.uint32)
        put_lane(group, leader)
        put_leader(group, leader == (group.lanes % 32).astype(np.uint32))

    return run


@_by_mask("match", undefined=Flow.MIXES_LANES)
def _match(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, instruction.operands
    kind = decoder.type(instruction)
    target = operands[0]
    first = target.first if isinstance(target, Pair) else target
    put = decoder.write(first, "b32")
    put_all = decoder.write(target.second, "pred") if isinstance(target, Pair) else None
    value, mask = decoder.read(operands[1], kind), decoder.read(operands[2], "b32")

    def run(group: Group) -> None:
        rows = to_rows(group, value(group))
        masks = np.broadcast_to(mask(group), (group.n,)) & members(group)
        # Compare every lane with every lane of its warp: 1024 comparisons, packed into a mask for
        # each lane.
        equal = rows[:, :, None] == rows[:, None, :]
        bits = np.packbits(equal, axis=2, bitorder="little").view(np.uint32)[:, :, 0]
        same = from_rows(group, bits) & masks
        if "any" in mods:
            put(group, same)
            return
        everyone = same == masks
        put(group, np.where(everyone, masks, np.uint32(0)))
        if put_all is not None:
            put_all(group, everyone)

    return run


@_by_mask("redux", undefined=Flow.MIXES_LANES)
def _redux(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, instruction.operands
    kind = decoder.type(instruction)
    operation = next(w for w in mods if w in ("add", "min", "max", "and", "or", "xor"))
    if kind == "f32":
        neutral, reduce = _reduction_of_floats(operation, mods)
    elif kind in ("u32", "s32", "b32"):
        neutral, reduce = _reduction(operation, np.dtype("i4" if kind == "s32" else "u4"))
    else:
        raise Unsupported
    put = decoder.write(operands[0], "b32")
    value, mask = decoder.read(operands[1], "b32"), decoder.read(operands[2], "b32")

    def run(group: Group) -> None:
        rows = to_rows(group, value(group))
        masks = np.broadcast_to(mask(group), (group.n,)) & members(group)
        out: Lanes = np.zeros(group.n, np.uint32)
        # One reduction for each distinct mask: a warp may be split into tiles.
        for which in np.unique(masks):
            chosen = (which >> np.arange(32, dtype=np.uint32) & np.uint32(1)).astype(bool)
            total = reduce(np.where(chosen, rows, np.uint32(neutral)))
            out = np.where(masks == which, from_warps(group, total), out)
        put(group, out)

    return run


def _reduction(operation: str, dtype: np.dtype[Any]) -> tuple[int, Callable[[Lanes], Lanes]]:
    """Return the bits of the neutral element, which lanes outside of a mask get, and the ufunc."""
    info = np.iinfo(dtype)
    ufunc, neutral = {
        "add": (np.add, 0),
        "min": (np.minimum, info.max),
        "max": (np.maximum, info.min),
        "and": (np.bitwise_and, -1),
        "or": (np.bitwise_or, 0),
        "xor": (np.bitwise_xor, 0),
    }[operation]
    return neutral & 0xFFFFFFFF, lambda rows: ufunc.reduce(
        rows.view(dtype), axis=1, dtype=dtype
    ).view(np.uint32)


def _reduction_of_floats(
    operation: str, mods: tuple[str, ...]
) -> tuple[int, Callable[[Lanes], Lanes]]:
    choose = {"min": numerics.minimum, "max": numerics.maximum}.get(operation)
    if choose is None:
        raise Unsupported
    keeps_nan, absolute = "NaN" in mods, "abs" in mods
    # NaN has no effect, except with .NaN; then an infinity has none. |x| is at least 0.
    least = 0 if absolute else 0xFF800000
    neutral = (0x7F800000 if operation == "min" else least) if keeps_nan else 0x7FFFFFFF

    def reduce(rows: Lanes) -> Lanes:
        rows = rows & np.uint32(0x7FFFFFFF) if absolute else rows
        return functools.reduce(
            lambda a, b: choose("f32", a, b, nan=keeps_nan), np.ascontiguousarray(rows.T)
        )

    return neutral, reduce


def _operand_rows(group: Group, value: Lanes) -> Lanes:
    """Lay an operand out by warps, as signed integers; a uniform one stays one value."""
    rows = value[None, :] if value.shape[0] == 1 else to_rows(group, value)
    return rows.astype(np.int64)


def _note_strangers(group: Group, source: Lanes, named: Lanes, opcode: str) -> None:
    """Record lanes whose value comes from a lane that is not here, or not in the mask."""
    chunk = group.chunk
    if not chunk.options.check_uninitialized:
        return
    known = members(group) & named
    rows = known[:, None] if known.shape[0] == 1 else to_rows(group, known)
    shape = ((group.n if group.whole_warps else chunk.size) // 32, 32)
    lacking = np.broadcast_to(rows >> source.astype(np.uint32) & 1 == 0, shape)
    index = np.flatnonzero(from_rows(group, lacking))
    if index.shape[0]:
        sources = from_rows(group, np.broadcast_to(source, shape))[index]
        text = (
            f"the value of {opcode} from lane {{}} of the warp, which has exited or is not masked"
        )
        each = np.full((index.shape[0], 4), 255, np.uint8)
        origin = np.full(index.shape, -1, np.int64)
        chunk.undefined_reads.append(Read(group.lanes[index], each, origin, text, sources))
