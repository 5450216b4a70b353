"""Directories for the files of a while, which go with their process however it ends.

A directory is locked as long as its process lives. What a process left that was killed is nobody's:
the next one that makes such a directory removes it.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import re
import shutil
import tempfile
from typing import TYPE_CHECKING

from culaunch._base.alive import claim, take_dead

if TYPE_CHECKING:
    from types import TracebackType

# What a user, a test or another version calls its own directories is not to match.
PREFIX = "culaunch-scratch-"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LITTLE = 16 << 20
_FEW = 16
# As compilers report it, whatever they are.
_NO_ROOM = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


class Scratch:
    """A directory of this process, for the user alone.

    Parameters
    ----------
    base : str, optional
        Where to make it; by default where temporary files are (``$TMPDIR``).
    prefix : str, optional
        What its name begins with: those of dead processes are told by it.
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
            if self.is_own:  # a forked child runs the parent's handlers, too
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
    """Remove what processes left that were killed: nobody holds their locks."""
    # The rest is what `mkdtemp` makes up: a directory of somebody's own may begin in the same way.
    pattern = re.compile(re.escape(prefix) + r"\w{6,8}")
    with contextlib.suppress(OSError), os.scandir(base) as items:
        for item in items:
            if pattern.fullmatch(item.name) is None:
                continue
            descriptor = take_dead(item.path, os.O_DIRECTORY)
            if descriptor is not None:
                shutil.rmtree(item.path, ignore_errors=True)
                os.close(descriptor)


def write_text(path: str, text: str) -> None:
    """Write a file for a compiler; an OSError names it."""
    try:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def no_room(compiler: str, said: str, directory: str) -> OSError | None:
    """Return the error of a compiler that failed because its disk was full, or None.

    Parameters
    ----------
    compiler : str
        Its name.
    said : str
        What it wrote.
    directory : str
        Where its files are.
    """
    found = next((text for text in _NO_ROOM if text in said), None)
    # So says cpp, and why is lost on the way.
    if found is None and "when writing output to" in said and little_room(directory):
        found = _NO_ROOM[0]
    if found is None:
        return None
    why = f"{found}: {compiler} writes its files there; TMPDIR names another place"
    return OSError(errno.ENOSPC, why, directory)


def little_room(directory: str) -> str:
    """Return a note for a compiler's error where there is little room for its files, or ``""``."""
    # A compiler that finds no room may say anything, and has removed its files by now.
    with contextlib.suppress(OSError):
        space = os.statvfs(directory)
        left = space.f_bavail * space.f_frsize
        if left < _LITTLE or (space.f_files and space.f_favail < _FEW):
            return (
                f"the disk of {directory} has room for {left >> 10} KiB and {space.f_favail} "
                "files; TMPDIR names another place for a compiler's"
            )
    return ""


def _make(base: str, prefix: str) -> tuple[str, int]:
    while True:
        path = tempfile.mkdtemp(prefix=prefix, dir=base)
        try:
            descriptor = os.open(path, _DIRECTORY)
        except FileNotFoundError:  # taken for a dead process's, and removed
            continue
        except OSError:
            os.rmdir(path)
            raise
        if claim(path, descriptor):
            return path, descriptor
        os.close(descriptor)
