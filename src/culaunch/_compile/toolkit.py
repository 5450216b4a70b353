"""CUDA's own headers that belong to one compiler."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Toolkit:
    """The directories with CUDA's own headers, found at first use.

    Parameters
    ----------
    find_dirs : callable
        Returns the directories, in search order, and notes on those that were rejected.
    """

    def __init__(self, find_dirs: Callable[[], tuple[Sequence[str], Sequence[str]]]) -> None:
        self._find_dirs = find_dirs

    @functools.cached_property
    def _located(self) -> tuple[Sequence[str], Sequence[str]]:
        return self._find_dirs()

    @property
    def dirs(self) -> Sequence[str]:
        """The directories, in search order."""
        return self._located[0]

    @property
    def notes(self) -> Sequence[str]:
        """Which directories were looked at and why they were rejected."""
        return self._located[1]

    def find(self, name: str) -> str | None:
        """Return the path of a header, or None."""
        paths = (os.path.join(directory, name) for directory in self.dirs)
        return next((path for path in paths if os.path.isfile(path)), None)
