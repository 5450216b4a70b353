"""Whether a stream is a terminal that shows colors, as ``NO_COLOR`` and ``TERM`` say."""

from __future__ import annotations

import os
from typing import IO, Any


def is_terminal(stream: IO[Any]) -> bool:
    """Tell whether a stream is a terminal that moves its cursor: not a pipe, not ``TERM=dumb``."""
    try:
        return stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    except (AttributeError, ValueError):  # no stream at all, or one that is closed
        return False


def has_colors(stream: IO[Any]) -> bool:
    """Tell whether to color text. ``NO_COLOR`` (https://no-color.org) with any value refuses."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")
