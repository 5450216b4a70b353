"""The objects of a process for ``culaunch bundle``: they may not exist any more at its end."""

from __future__ import annotations

import os

VARIABLE = "CULAUNCH_BUNDLE"

_made: list[object] | None = [] if VARIABLE in os.environ else None


def keep_to_bundle(one: object) -> None:
    """Keep a function or a kernel until the process ends, if the process runs to be bundled."""
    # A function defined inside a function, and a module loaded there, would otherwise be freed with
    # it.
    if _made is not None:
        _made.append(one)


def kept_to_bundle() -> tuple[object, ...]:
    """Return the kept objects, in the order of their creation."""
    return tuple(_made or ())
