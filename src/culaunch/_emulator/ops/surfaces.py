"""Reads, writes and reductions of surfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import decodes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.fault import LAUNCH_FAILED, MISALIGNED_ADDRESS, Fault
from culaunch._emulator.memory.bytes import Piece
from culaunch._emulator.memory.how import PLAIN, RELAXED
from culaunch._emulator.memory.surface import Surface
from culaunch._emulator.ops.texture_units import (
    Place,
    each_unit,
    geometry_of,
    spread,
    write_words,
)
from culaunch._emulator.types import BITS, is_type, size_of

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.memory.surface import Places
    from culaunch._emulator.ops.texture_units import Geometry, Named
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes

_CLAMPS = ("trap", "clamp", "zero")
_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or,
}  # fmt: skip
_KNOWN = frozenset(
    (*_CLAMPS, *_REDUCTIONS, "b", "p", "v2", "v4", "ca", "cg", "cs", "cv", "wb", "wt")
)


@decodes("suld", results=1, effects=True, waits=False, undefined=Flow.COMPUTES)
def _suld(decoder: Decoder, instruction: Instruction) -> Op:
    geometry, clamp, kind = _form(instruction)
    if "p" in instruction.mods:
        raise Unsupported  # PTX has no formatted read
    place = Place(decoder, instruction.operands[1], geometry, "s32")
    put = [decoder.write(one, kind) for one in decoder.vector(instruction.operands[0])]
    size = size_of(kind)

    def run(group: Group) -> None:
        named = place.read(group)

        def words_of(unit: Surface, part: Group, lanes: Lanes) -> Lanes:
            places = _places(named, part, lanes, unit, size * len(put), clamp)
            _check_races(part, unit, places, _kept(places, clamp), size * len(put))
            octets = unit.load(places.first, size * len(put))
            octets[places.outside & (clamp == "zero")] = 0
            return octets.view(BITS[size])

        write_words(group, named.handles, Surface, put, words_of)

    return run


@decodes("sust", results=0, effects=True, waits=False, undefined=Flow.MUST_BE_DEFINED)
def _sust(decoder: Decoder, instruction: Instruction) -> Op:
    geometry, clamp, kind = _form(instruction)
    place = Place(decoder, instruction.operands[0], geometry, "s32")
    values = [decoder.read(one, kind) for one in decoder.vector(instruction.operands[1])]
    is_formatted = "p" in instruction.mods

    def run(group: Group) -> None:
        named = place.read(group)
        given = np.stack([spread(group, read(group)) for read in values], axis=1)
        for unit, part, lanes in each_unit(group, named.handles, Surface):
            words = _formatted(unit, given[lanes]) if is_formatted else given[lanes]
            octets = np.ascontiguousarray(words).view(np.uint8)
            size = octets.shape[1]
            # A formatted write counts texels, the others count bytes.
            step = size if is_formatted else 1
            places = _places(named, part, lanes, unit, size, clamp, step)
            kept = _kept(places, clamp)
            _check_races(part, unit, places, kept, size, octets)
            unit.store(places.first[kept], octets[kept])

    return run


@decodes("sured", results=0, effects=True, waits=False, undefined=Flow.MUST_BE_DEFINED)
def _sured(decoder: Decoder, instruction: Instruction) -> Op:
    mods = instruction.mods
    geometry, clamp, kind = _form(instruction)
    place = Place(decoder, instruction.operands[0], geometry, "s32")
    read, size = decoder.read(instruction.operands[1], kind), size_of(kind)
    combine = next(_REDUCTIONS[word] for word in mods if word in _REDUCTIONS)
    # The first coordinate of .p counts elements of the type.
    step, by_format = (size, True) if "p" in mods else (1, False)

    def run(group: Group) -> None:
        named = place.read(group)
        given = spread(group, read(group))
        for unit, part, lanes in each_unit(group, named.handles, Surface):
            sign = unit.image.shape.item.dtype.kind if by_format else kind[0].replace("b", "u")
            if sign == "f":
                reason = "sured.p on a surface of floats: its format must be of integers"
                raise Fault(LAUNCH_FAILED, reason, lane=part.lane_at(0))
            dtype = np.dtype(f"{sign.replace('s', 'i')}{size}")
            places = _places(named, part, lanes, unit, size, clamp, step)
            kept = _kept(places, clamp)
            _check_races(part, unit, places, kept, size, reduces=True)
            first, which = np.unique(places.first[kept], return_inverse=True)
            values = np.ascontiguousarray(unit.load(first, size)).view(dtype)[:, 0]
            combine.at(values, which, given[lanes][kept].view(dtype))
            unit.store(first, values.view(np.uint8).reshape(-1, size))

    return run


def _form(instruction: Instruction) -> tuple[Geometry, str, str]:
    mods = instruction.mods
    geometry, clamp = geometry_of(instruction), mods[-1]
    words = [word for word in mods if not is_type(word) and word not in _KNOWN]
    if len(words) > 1 or geometry.is_cube or clamp not in _CLAMPS:
        raise Unsupported
    return geometry, clamp, next(word for word in mods if is_type(word))


def _kept(places: Places, clamp: str) -> Lanes:
    """Return which lanes access the array: only .zero ignores places outside."""
    return ~places.outside | (clamp != "zero")


def _check_races(
    group: Group,
    unit: Surface,
    places: Places,
    kept: Lanes,
    size: int,
    values: Lanes | None = None,
    *,
    reduces: bool = False,
) -> None:
    """Record an access of `kept` lanes, with the bytes that a write brings."""
    races, lanes = group.chunk.races, np.flatnonzero(kept)
    if races is None or not lanes.shape[0]:
        return
    records = races.history.records_of(unit.image)
    piece = Piece(lanes, unit.image.bytes, places.first[lanes])
    if reduces:
        races.update(group, piece, records, size, RELAXED)
    elif values is None:
        races.read(group, piece, records, size, PLAIN)
    else:
        races.write(group, piece, records, size, np.ascontiguousarray(values[lanes]), PLAIN)


def _formatted(unit: Surface, words: Lanes) -> Lanes:
    """Convert words to the channels of a texel: floats rounded, integers cut to their range."""
    shape = unit.image.shape
    words, dtype = words[:, : shape.channels], shape.item.dtype
    if words.shape[1] < shape.channels:
        words = np.pad(words, ((0, 0), (0, shape.channels - words.shape[1])))
    if dtype.kind == "f":
        return words.view(np.float32).astype(dtype)
    limits: Any = np.iinfo(dtype)
    numbers: Lanes = np.clip(words.view(f"{dtype.kind}4"), limits.min, limits.max).astype(dtype)
    return numbers


def _places(
    named: Named, group: Group, lanes: Lanes, unit: Surface, size: int, clamp: str, step: int = 1
) -> Places:
    """Find what lanes access; the first coordinate counts `step` bytes."""
    nothing = np.zeros(lanes.shape, np.int64)
    axes = [words[lanes].view(np.int32).astype(np.int64) for words in named.axes]
    x, y, z = (*axes, nothing, nothing)[:3]
    x = x * step
    if named.layer is not None:
        z = named.layer[lanes].astype(np.int64)
    wrong = np.flatnonzero(x % size)
    if wrong.shape[0]:
        raise Fault(
            MISALIGNED_ADDRESS,
            f"{size}-byte access to a surface at byte {x[wrong[0]]} of a row, which is not a "
            f"multiple of {size}",
            lane=group.lane_at(int(wrong[0])),
        )
    places = unit.places(x, y, z, size)
    if clamp == "trap" and places.outside.any():
        lane = int(np.flatnonzero(places.outside)[0])
        at: tuple[Any, ...] = tuple(int(one[lane]) for one in (x, y, z))
        shape = unit.image.shape
        raise Fault(
            LAUNCH_FAILED,
            f"{size}-byte access to a surface at byte {at[0]}, row {at[1]}, slice {at[2]}, outside "
            f"its {unit.image.pitch} bytes, {shape.sizes[1]} rows and {shape.slices} slices",
            kind="out-of-bounds",
            lane=group.lane_at(lane),
        )
    return places
