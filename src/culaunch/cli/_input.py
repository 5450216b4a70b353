"""``-``: an image from standard input."""

from __future__ import annotations

import sys

from culaunch.cli._output import STANDARD


def image_source(name: str) -> str | bytes:
    """Return what the API opens: a path as it is, or the bytes of standard input for ``-``."""
    return sys.stdin.buffer.read() if name == STANDARD else name
