"""Versions of Triton: their format, and the newest known one."""

from __future__ import annotations

import re

# The newest version whose calling convention is known. A newer one must have the same layout.
NEWEST_KNOWN = (3, 9)


def parse_version(text: str) -> tuple[int, int]:
    """Read major and minor of a version such as ``3.6.0`` or ``3.7.0+git1234``."""
    match = re.match(r"(\d+)\.(\d+)", text)
    if match is None:
        raise ValueError(f"{text!r} is not a version of Triton")
    return int(match[1]), int(match[2])
