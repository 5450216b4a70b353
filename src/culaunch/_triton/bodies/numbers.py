"""Numbers of a call in the body of a function, where Triton wants Python's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.reads.key_kinds import KeyKind

if TYPE_CHECKING:
    from culaunch._launch.launches.recording import RecordingBody
    from culaunch._triton.reads.shapes import ShapePart


def pinned(body: RecordingBody, value: Any) -> Any:
    """Return a number of the call as Python's: the choice depends on it, so calls are guarded."""
    kind = body.what(value)
    if kind is None or kind == "array":
        return value
    if type(value) in (bool, int, float):
        return value
    return {"bool": bool, "int": int, "float": float}[kind](value)


def pin_shape(body: RecordingBody, array: Any, part: ShapePart) -> None:
    """Guard a number of an array's shape: the choice depends on it."""
    if body.what(array) != "array" or part.kind == KeyKind.RANK:
        return  # how many dimensions there are is of the kind of the call
    if part.kind == KeyKind.COUNT:
        pinned(body, array.size)
        return
    numbers = array.shape if part.kind == KeyKind.SIZE else array.strides
    if -len(numbers) <= part.dimension < len(numbers):
        pinned(body, numbers[part.dimension])


def plain(body: RecordingBody, value: Any) -> Any:
    """Return a number of the call as Python's, where nothing depends on it."""
    return getattr(value, "hint", value) if body.what(value) != "array" else value
