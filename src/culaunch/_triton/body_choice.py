"""What is chosen for a launch in the body of a function, and the numbers that it depends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culaunch._launch.recording import RecordingBody


@dataclass(frozen=True)
class BodyChoice:
    """What is set by name.

    Attributes
    ----------
    constants, options : dict
        Arguments of the kernel, and options.
    replaced : frozenset of str
        Those that stand in the place of what the call gave.
    """

    constants: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()


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
