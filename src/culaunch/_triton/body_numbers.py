"""Numbers of a call in the body of a function, where Triton wants Python's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culaunch._launch.recording import RecordingBody


def pinned(body: RecordingBody, value: Any) -> Any:
    """Return a number of the call as Python's: the choice depends on it, so calls are guarded."""
    kind = body.what(value)
    if kind is None or kind == "array":
        return value
    if type(value) in (bool, int, float):
        return value
    return {"bool": bool, "int": int, "float": float}[kind](value)


def plain(body: RecordingBody, value: Any) -> Any:
    """Return a number of the call as Python's, where nothing depends on it."""
    return getattr(value, "hint", value) if body.what(value) != "array" else value
