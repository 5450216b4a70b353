"""The effects of a body at the end of a path, in order. Registers and arrays are numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._function.programs.record import Register

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._base.places import Place


class Allocate(NamedTuple):
    """Allocate a dense array."""

    array: int
    dtype: int
    fill: int
    place: Place
    shape: tuple[Register, ...]


class Constant(NamedTuple):
    """An object that the program holds; compared by identity or value."""

    value: Any


class View(NamedTuple):
    """View an array from an offset in bytes."""

    array: int
    source: int
    offset: Register
    dtype: int
    place: Place
    shape: tuple[Register, ...]
    strides: tuple[Register, ...]


class Parameter(NamedTuple):
    """A parameter of a launch, or a patch of a structure: its kind, place and operands."""

    kind: int
    offset: int
    size: int
    operands: tuple[Any, ...]


class Launch(NamedTuple):
    """Launch a kernel. `options` are the given options, with their registers."""

    kernel: Any
    predicate: Register | None
    options: tuple[tuple[str, tuple[Register, ...]], ...]
    place: Place
    parameters: tuple[Parameter, ...]


class Call(NamedTuple):
    """Call something native with arrays and numbers, and ``out=``."""

    callable: Any
    predicate: Register | None
    place: Place
    arguments: tuple[tuple[int, Any], ...]
    outputs: tuple[int, ...]


class Return(NamedTuple):
    """Return a value: its kind, and its parts."""

    value: tuple[Any, ...]


def renumbered(thing: Any, number: Callable[[Register], Register]) -> Any:
    """Return an equal effect with other register numbers."""
    if type(thing) is Register:
        return number(thing)
    if type(thing) is tuple:
        return tuple(renumbered(one, number) for one in thing)
    if isinstance(thing, (Allocate, View, Parameter, Launch, Call, Return)):
        return type(thing)(*(renumbered(one, number) for one in thing))
    return thing
