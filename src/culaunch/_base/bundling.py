"""The objects of a process for ``culaunch bundle``: they may not exist any more at its end."""

from __future__ import annotations

import os

VARIABLE = "CULAUNCH_BUNDLE"

_made: list[object] | None = [] if VARIABLE in os.environ else None


def keep_to_bundle(one: object) -> None:
    """Keep a function or a kernel until the process ends, where it runs to be bundled."""
    # A function that is defined in a function, and a module that is loaded there, are gone with it.
    if _made is not None:
        _made.append(one)


def kept_to_bundle() -> tuple[object, ...]:
    """Return what was kept, in the order in which it was made."""
    return tuple(_made or ())
