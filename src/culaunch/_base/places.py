"""Places in the user's code: where a body that is traced is just now."""

from __future__ import annotations

import linecache
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import FrameType

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Place(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def text(self) -> str:
        """Write it out: ``file:line``, and the line's text if it can be read."""
        # Read where an error is made, and not for each place: most places are never shown.
        text = linecache.getline(self.file, self.line).strip()
        return f"{self}: `{text}`" if text else str(self)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def here() -> Place:
    """Return the innermost place that is not in culaunch. No source is read."""
    frame = user_frame()
    return Place(frame.f_code.co_filename, frame.f_lineno)


def user_frame() -> FrameType:
    """Return the innermost frame that is not of culaunch."""
    frame = sys._getframe(1)  # noqa: SLF001 - inspect.currentframe is this, and more
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame


def is_ours(frame: FrameType) -> bool:
    """Tell whether a frame runs code of culaunch."""
    return is_own_file(frame.f_code.co_filename)


def is_own_file(name: str) -> bool:
    """Tell whether a file belongs to culaunch."""
    return name.startswith(_HERE)


def room_of(name: str) -> str:
    """Return the first folder, or the file, of a file of culaunch."""
    return name.removeprefix(_HERE).partition(os.sep)[0]


def with_line(place: str) -> str:
    """Write out a place that was kept as ``file:line``."""
    file, _, line = place.rpartition(":")
    return Place(file, int(line)).text() if line.isdigit() else place
