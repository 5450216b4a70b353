"""``-o -``: an output that goes to standard output."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

STANDARD = "-"


@contextlib.contextmanager
def output_path(output: str, suffix: str = "") -> Iterator[str]:
    """Yield the path to write to; for ``-`` one whose content goes to standard output at the end.

    Nothing is written to standard output when the block fails.
    """
    if output != STANDARD:
        yield output
        return
    with tempfile.TemporaryDirectory(prefix="culaunch-") as directory:
        path = os.path.join(directory, f"output{suffix}")
        yield path
        with open(path, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
