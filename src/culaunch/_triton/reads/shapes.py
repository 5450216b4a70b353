"""The parts of a tensor's shape and strides that a function's instructions read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from culaunch._core import NUMBERS
from culaunch._triton.reads.instructions import constant_of, is_call, is_method, is_subscript
from culaunch._triton.reads.key_kinds import KeyKind

if TYPE_CHECKING:
    import dis
    from collections.abc import Sequence

_MOST = NUMBERS["triton"]["MOST_DIMENSIONS"]
_MOST_INDEX = 64


class ShapePart(NamedTuple):
    """One number of a tensor."""

    kind: KeyKind
    """One of those of a shape."""
    dimension: int = 0
    """Which size or stride, counting from the end if it is negative."""


_RANK = (ShapePart(KeyKind.RANK),)
_COUNT = (ShapePart(KeyKind.COUNT),)


def _whole(kind: KeyKind) -> tuple[ShapePart, ...]:
    return (*_RANK, *(ShapePart(kind, i) for i in range(_MOST)))


_SIZES, _STRIDES = _whole(KeyKind.SIZE), _whole(KeyKind.STRIDE)
_ATTRIBUTES = {"ndim": _RANK, "shape": _SIZES}
# Of methods without an argument.
_METHODS = {
    "dim": _RANK,
    "is_contiguous": _SIZES + _STRIDES,
    "ndimension": _RANK,
    "nelement": _COUNT,
    "numel": _COUNT,
    "size": _SIZES,
    "stride": _STRIDES,
}
_INDEXED = {"size": KeyKind.SIZE, "stride": KeyKind.STRIDE}


def shape_parts(ahead: Sequence[dis.Instruction]) -> tuple[tuple[ShapePart, ...], int]:
    """Determine which parts of a tensor's shape the instructions after its load read.

    Returns
    -------
    (tuple of ShapePart, int)
        The parts, and the number of these instructions. Later ones work on numbers and tuples of
        numbers. Nothing and 0 if they read something else.
    """
    if not ahead or ahead[0].opname not in ("LOAD_ATTR", "LOAD_METHOD"):
        return (), 0
    name = ahead[0].argval
    index = _index(ahead[1]) if len(ahead) > 2 else None
    if not is_method(ahead[0]):
        if name == "shape" and index is not None and is_subscript(ahead[2]):
            return (ShapePart(KeyKind.SIZE, index),), 3
        return (_ATTRIBUTES[name], 1) if name in _ATTRIBUTES else ((), 0)
    if name in _INDEXED and index is not None and is_call(ahead[2], 1):
        return (ShapePart(_INDEXED[name], index),), 3
    if name in _METHODS and len(ahead) > 1 and is_call(ahead[1], 0):
        return _METHODS[name], 2
    return (), 0


def _index(one: dis.Instruction) -> int | None:
    found = constant_of(one)
    value = None if found is None else found[0]
    return value if type(value) is int and -_MOST_INDEX <= value < _MOST_INDEX else None
