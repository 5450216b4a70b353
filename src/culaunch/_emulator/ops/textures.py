"""Reads of textures: tex, tld4, and queries of their sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import decodes
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.memory.surface import Surface
from culaunch._emulator.memory.texture import Coordinates, Texture
from culaunch._emulator.numerics import cvt
from culaunch._emulator.ops.texture_units import (
    Place,
    geometry_of,
    handle_of,
    spread,
    write_words,
)
from culaunch._emulator.ptx.syntax import Address, Immediate, Pair
from culaunch._emulator.types import is_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ops.texture_units import Geometry
    from culaunch._emulator.ptx.syntax import Instruction, Operand
    from culaunch._emulator.types import Lanes

_KNOWN = frozenset(("base", "level", "grad", "v4", "v2", "r", "g", "b", "a"))
# The results of a query, from the shape of the largest image.
_QUERIES: dict[str, Callable[[Any], int]] = {
    "width": lambda unit: unit.image.shape.width,
    "height": lambda unit: unit.image.shape.height,
    "depth": lambda unit: 0 if unit.image.shape.has_layers else unit.image.shape.depth,
    "array_size": lambda unit: unit.image.shape.depth if unit.image.shape.has_layers else 0,
    "num_mipmap_levels": lambda unit: len(unit.levels),
    "normalized_coords": lambda unit: unit.sampler.flags >> 1 & 1,
}


@decodes("tex", "tld4", results=1, effects=True, waits=False, undefined=Flow.COMPUTES)
def _tex(decoder: Decoder, instruction: Instruction) -> Op:
    mods, (result, where, *rest) = instruction.mods, instruction.operands
    geometry = geometry_of(instruction)
    words = [word for word in mods if not is_type(word) and word not in _KNOWN]
    if len(words) > 1:  # the geometry is one
        raise Unsupported(f"the modifiers {words}")
    kind, coordinate = [word for word in mods if is_type(word)]
    place = Place(decoder, where, geometry, coordinate)
    put = _results(decoder, result, kind)
    component = "rgba".index(mods[0]) if instruction.name == "tld4" else None
    detail = _level_of_detail(decoder, mods, rest, geometry)
    offsets = _offsets(decoder, rest)

    def run(group: Group) -> None:
        named = place.read(group)
        axes = [_number(words, coordinate) for words in named.axes]
        at = _coordinates(axes, named.layer, geometry, offsets)
        level = detail and detail(group)

        def words_of(unit: Texture, part: Group, lanes: Lanes) -> Lanes:
            if component is not None:
                words = unit.gather(part, at.of(lanes), component)
            else:
                words = unit.fetch(part, at.of(lanes), level and level(unit, lanes))
            return _typed(words, kind)

        write_words(group, named.handles, Texture, put, words_of)

    return run


def _number(words: Lanes, kind: str) -> Lanes:
    return words.view(np.float32).astype(np.float64) if kind == "f32" else words.view(np.int32)


def _results(decoder: Decoder, result: Operand, kind: str) -> list[Any]:
    """Return the writers of the vector, and of the predicate that tells that it was read."""
    target, resident = (result.first, result.second) if isinstance(result, Pair) else (result, None)
    put: list[Any] = [decoder.write(one, kind) for one in decoder.vector(target)]
    if resident is not None:
        put_resident = decoder.write(resident, "pred")
        put.append(lambda group, _: put_resident(group, np.ones(1, bool)))
    return put


def _typed(words: Lanes, kind: str) -> Lanes:
    """Return words of 32 bits as the results: halves, pairs of halves, or the same."""
    if kind not in ("f16", "f16x2"):
        return words
    halves = cvt("f16", "f32", words.reshape(-1), rounding="rn").reshape(words.shape)
    return np.ascontiguousarray(halves).view(np.uint32) if kind == "f16x2" else halves


def _coordinates(
    axes: list[Lanes], layer: Lanes | None, geometry: Geometry, offsets: tuple[int, ...]
) -> Coordinates:
    slices = None if layer is None else np.minimum(layer, np.uint32(1 << 20)).astype(np.int64)
    if not geometry.is_cube:
        return Coordinates(axes, slices, offsets)
    face, plane = _on_face(*axes)
    face = face if slices is None else face + 6 * slices
    return Coordinates(plane, face, offsets, is_face=True)


def _on_face(x: Lanes, y: Lanes, z: Lanes) -> tuple[Lanes, list[Lanes]]:
    """Return the face of a cube that a direction hits, and the place there from 0 to 1."""
    size = [np.abs(one) for one in (x, y, z)]
    axis = np.where((size[0] > size[1]) & (size[0] > size[2]), 0, np.where(size[1] > size[2], 1, 2))
    major = np.choose(axis, (x, y, z))
    negative = major < 0
    s = np.choose(axis, (np.where(negative, z, -z), x, np.where(negative, -x, x)))
    t = np.choose(axis, (-y, np.where(negative, -z, z), -y))
    return 2 * axis + negative, [(one / np.abs(major) + 1) / 2 for one in (s, t)]


def _level_of_detail(
    decoder: Decoder, mods: tuple[str, ...], rest: list[Operand], geometry: Geometry
) -> Callable[[Group], Callable[[Texture, Lanes], Lanes]] | None:
    """Return a function for the level of detail of some lanes, and take its operands."""
    count = 1 if "level" in mods else 2 if "grad" in mods else 0
    if not count:
        return None
    if count == 2 and geometry.is_cube:
        raise Unsupported("gradients on a cube")
    readers = [
        [decoder.read(one, "f32") for one in decoder.vector(rest.pop(0))[: geometry.axes]]
        for _ in range(count)
    ]

    def read(group: Group) -> Callable[[Texture, Lanes], Lanes]:
        values = [[_number(spread(group, one(group)), "f32") for one in row] for row in readers]
        if count == 1:
            return lambda _, lanes: values[0][0][lanes]

        def from_slopes(texture: Texture, lanes: Lanes) -> Lanes:
            """Return the logarithm of the texels that the longer slope crosses."""
            sizes = texture.image.shape.sizes
            squares: list[Any] = [
                sum((one[lanes] * size) ** 2 for one, size in zip(row, sizes, strict=False))
                for row in values
            ]
            level: Lanes = np.log2(np.maximum(*squares)) / 2
            return level

        return from_slopes

    return read


def _offsets(decoder: Decoder, rest: list[Operand]) -> tuple[int, ...]:
    """Return the offsets in texels after the coordinates."""
    if not rest:
        return (0, 0, 0)
    items = decoder.vector(rest[0])
    if len(rest) > 1 or not all(isinstance(item, Immediate) for item in items):
        raise Unsupported("a comparison with a depth, or an offset in a register")
    values = [int(decoder.constant(item, "s32").view(np.int32)[0]) for item in items]
    return (*values, 0, 0, 0)[:3]


@decodes("txq", "suq", results=1, effects=True, waits=False, undefined=Flow.COMPUTES)
def _query(decoder: Decoder, instruction: Instruction) -> Op:
    query = next((word for word in instruction.mods if word in _QUERIES), None)
    kind: Any = Texture if instruction.name == "txq" else Surface
    if query is None or "level" in instruction.mods:
        raise Unsupported("this query")
    value, where = _QUERIES[query], instruction.operands[1]
    if not isinstance(where, Address):
        raise Unsupported
    handle = handle_of(decoder, where.base)
    put = [decoder.write(instruction.operands[0], "b32")]

    def run(group: Group) -> None:
        write_words(
            group,
            spread(group, handle(group)),
            kind,
            put,
            lambda unit, _, lanes: np.full((lanes.shape[0], 1), value(unit), np.uint32),
        )

    return run


@decodes("istypep", results=1, effects=True, waits=False, undefined=Flow.COMPUTES)
def _istypep(decoder: Decoder, instruction: Instruction) -> Op:
    kinds: dict[str, Any] = {"texref": Texture, "samplerref": Texture, "surfref": Surface}
    kind = kinds[instruction.mods[0]]
    put = decoder.write(instruction.operands[0], "pred")
    read = handle_of(decoder, instruction.operands[1])

    def run(group: Group) -> None:
        units = group.chunk.launch.texture_units
        put(group, np.array([isinstance(units.get(int(one)), kind) for one in read(group)]))

    return run
