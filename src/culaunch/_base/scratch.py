"""Temporary directories that are removed after the end of their process, in any case.

A directory is locked as long as its process lives. The next process that makes a directory like it
removes those of killed processes.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import tempfile
from typing import TYPE_CHECKING

from culaunch._base.alive import claim, take_dead

if TYPE_CHECKING:
    from types import TracebackType

# The names must not match directories of a user, a test or another version.
PREFIX = "culaunch-scratch-"
_swept = 0
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Scratch:
    """A private directory of this process.

    Parameters
    ----------
    base : str, optional
        The parent directory; by default the one for temporary files (``$TMPDIR``).
    prefix : str, optional
        Prefix of its name, which identifies the directories of dead processes.
    """

    def __init__(self, base: str | None = None, prefix: str = PREFIX) -> None:
        self._base = tempfile.gettempdir() if base is None else base
        self._prefix = prefix
        self._owner = os.getpid()
        remove_dead(self._base, prefix)
        self.path, self._lock = _make(self._base, prefix)

    @property
    def is_own(self) -> bool:
        """Whether this process made it; a forked one has it from its parent."""
        return self._owner == os.getpid()

    def remove(self) -> None:
        """Remove it with all that is in it."""
        if self.is_own and self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def remove_at_exit(self) -> Scratch:
        """Keep it until the process ends."""

        def end() -> None:
            if self.is_own:  # a forked child also runs the parent's handlers
                self.remove()
                # Workers of multiprocessing end without running theirs.
                remove_dead(self._base, self._prefix)

        atexit.register(end)
        return self

    def __enter__(self) -> str:
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


def remove_dead(base: str, prefix: str = PREFIX) -> None:
    """Remove the directories of killed processes, whose locks are free."""
    # `mkdtemp` makes up the rest: a user's own directory may begin in the same way.
    pattern = re.compile(re.escape(prefix) + r"\w{6,8}")
    with contextlib.suppress(OSError), os.scandir(base) as items:
        for item in items:
            if pattern.fullmatch(item.name) is None:
                continue
            descriptor = take_dead(item.path, os.O_DIRECTORY)
            if descriptor is not None:
                shutil.rmtree(item.path, ignore_errors=True)
                os.close(descriptor)


def remove_dead_once() -> None:
    """Remove, once in a process, the temporary directories of killed processes."""
    global _swept  # noqa: PLW0603 - twice does no harm
    if _swept != os.getpid():
        _swept = os.getpid()
        remove_dead(tempfile.gettempdir())


def _make(base: str, prefix: str) -> tuple[str, int]:
    while True:
        path = tempfile.mkdtemp(prefix=prefix, dir=base)
        try:
            descriptor = os.open(path, _DIRECTORY)
        except FileNotFoundError:  # another process removed it as a leftover
            continue
        except OSError:
            os.rmdir(path)
            raise
        if claim(path, descriptor):
            return path, descriptor
        os.close(descriptor)
