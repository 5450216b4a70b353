"""Where in a Python program a driver call comes from."""

from __future__ import annotations

import inspect
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])


def allocation_site() -> str:
    """Return the innermost line outside culaunch as ``file:line``; empty if there is none."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
