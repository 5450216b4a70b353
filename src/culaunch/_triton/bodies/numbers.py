"""A call's numbers in a function's body, if Triton needs Python numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.reads.key_kinds import KeyKind

if TYPE_CHECKING:
    from culaunch._launch.launches.recording import RecordingBody
    from culaunch._triton.reads.shapes import ShapePart


def pinned(body: RecordingBody, value: Any) -> Any:
    """Return a number of the call as Python's, with a guard, because the choice depends on it."""
    kind = body.what(value)
    if kind is None or kind == "array":
        return value
    if type(value) in (bool, int, float):
        return value
    return {"bool": bool, "int": int, "float": float}[kind](value)


def pin_shape(body: RecordingBody, array: Any, part: ShapePart) -> None:
    """Guard a number of an array's shape, because the choice depends on it."""
    if body.what(array) != "array" or part.kind == KeyKind.RANK:
        return  # the number of dimensions is part of the call's kind
    if part.kind == KeyKind.COUNT:
        pinned(body, array.size)
        return
    numbers = array.shape if part.kind == KeyKind.SIZE else array.strides
    if -len(numbers) <= part.dimension < len(numbers):
        pinned(body, numbers[part.dimension])


def plain(body: RecordingBody, value: Any) -> Any:
    """Return a number of the call as Python's, if nothing depends on it."""
    return getattr(value, "hint", value) if body.what(value) != "array" else value
