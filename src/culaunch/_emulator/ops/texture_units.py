"""Handles and coordinates of textures and surfaces, as instructions name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.fault import ILLEGAL_ADDRESS, Fault
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import load
from culaunch._emulator.memory.surface import Surface
from culaunch._emulator.memory.texture import Texture
from culaunch._emulator.ptx.syntax import Symbol, Vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._emulator.decode.decoder import Decoder, Reader
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.ptx.syntax import Instruction, Operand
    from culaunch._emulator.types import Lanes

_Unit = TypeVar("_Unit", Texture, Surface)


class Geometry(NamedTuple):
    """The coordinates of an access: how many axes, and whether a layer is before them."""

    axes: int
    has_layer: bool = False
    is_cube: bool = False


_GEOMETRIES = {
    "1d": Geometry(1),
    "2d": Geometry(2),
    "3d": Geometry(3),
    "a1d": Geometry(1, has_layer=True),
    "a2d": Geometry(2, has_layer=True),
    "cube": Geometry(3, is_cube=True),
    "acube": Geometry(3, has_layer=True, is_cube=True),
}


def geometry_of(instruction: Instruction) -> Geometry:
    """Return the geometry that an instruction names."""
    for word in instruction.mods:
        if word in _GEOMETRIES:
            return _GEOMETRIES[word]
    raise Unsupported("the geometry")


class Named(NamedTuple):
    """The object and the place that each lane names: words of 32 bits for each axis."""

    handles: Lanes
    layer: Lanes | None
    axes: list[Lanes]


class Place:
    """The operand ``[object, {coordinates}]``."""

    def __init__(self, decoder: Decoder, operand: Operand, geometry: Geometry, kind: str) -> None:
        if not isinstance(operand, Vector) or len(operand.items) != 2:
            raise Unsupported("a separate sampler")
        unit, coordinates = operand.items
        items = list(decoder.vector(coordinates))
        self._handle = handle_of(decoder, unit)
        self._layer = decoder.read(items.pop(0), "u32") if geometry.has_layer else None
        self._axes: list[Reader] = [decoder.read(item, kind) for item in items[: geometry.axes]]
        if len(self._axes) < geometry.axes:
            raise Unsupported("too few coordinates")

    def read(self, group: Group) -> Named:
        """Return what each lane of a group names."""
        layer = None if self._layer is None else spread(group, self._layer(group))
        axes = [spread(group, axis(group)) for axis in self._axes]
        return Named(spread(group, self._handle(group)), layer, axes)


def handle_of(decoder: Decoder, unit: Operand) -> Reader:
    """Return a reader of a handle: a register, or what a reference in the module holds."""
    read = decoder.read(unit, "u64")
    if not isinstance(unit, Symbol):
        return read

    def held(group: Group) -> Lanes:
        return load(group, LOCATORS["global"](group, read(group), 8, "read"), 8, 1)[0]

    return held


def spread(group: Group, values: Lanes) -> Lanes:
    """Return a value for each lane of the group."""
    return np.broadcast_to(values, (group.n,))


def each_unit(
    group: Group, handles: Lanes, kind: type[_Unit]
) -> Iterator[tuple[_Unit, Group, Lanes]]:
    """Yield each object that lanes name, these lanes without registers, and their indices."""
    if (handles == handles[0]).all():  # as a kernel mostly does: much quicker than sorting them
        yield _unit(group, int(handles[0]), kind), group, np.arange(group.n)
        return
    for handle in np.unique(handles):
        lanes = np.flatnonzero(handles == handle)
        part = group.narrow(lanes)
        yield _unit(part, int(handle), kind), part, lanes


def _unit(group: Group, handle: int, kind: type[_Unit]) -> _Unit:
    units = group.chunk.launch.texture_units
    unit: Any = units.get(handle)
    if isinstance(unit, kind) and unit.image.exists:
        return unit
    noun = f"{kind.noun} object"
    if isinstance(unit, kind):
        problem = f"the CUDA array of the {noun} {handle:#x} is destroyed"
    elif unit is not None:
        problem = f"{handle:#x} is a {unit.noun} object, but the instruction needs a {noun}"
    elif handle in units:
        problem = f"the {noun} {handle:#x} is destroyed"
    else:
        problem = f"{handle:#x} is not a {noun}: pass the handle that its creation returned"
    raise Fault(ILLEGAL_ADDRESS, problem, kind="invalid-handle", lane=group.lane_at(0))


def write_words(
    group: Group, handles: Lanes, kind: type[_Unit], put: list[Any], run: Callable[..., Lanes]
) -> None:
    """Write to the results what `run` returns for the lanes of each object: rows of words."""
    words: Lanes | None = None
    for unit, part, lanes in each_unit(group, handles, kind):
        rows = run(unit, part, lanes)
        if part is group:
            words = rows
            break
        if words is None:
            words = np.zeros((group.n, rows.shape[1]), rows.dtype)
        words[lanes] = rows
    assert words is not None
    for number, write in enumerate(put):
        # A predicate after the words takes no value.
        write(group, np.ascontiguousarray(words[:, number % words.shape[1]]))
