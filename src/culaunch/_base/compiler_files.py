"""Temporary files of compilers, and the error if the disk has no room for them."""

from __future__ import annotations

import contextlib
import errno
import os

_LITTLE = 16 << 20
_FEW = 16
# The system's messages, as compilers print them.
_NO_ROOM = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


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
        Its output.
    directory : str
        Where its files are.
    """
    found = next((text for text in _NO_ROOM if text in said), None)
    # cpp prints this, and omits the reason.
    if found is None and "when writing output to" in said and little_room(directory):
        found = _NO_ROOM[0]
    if found is None:
        return None
    why = f"{found}: {compiler} writes its files in this directory: set TMPDIR to another one"
    return OSError(errno.ENOSPC, why, directory)


def little_room(directory: str) -> str:
    """Return a note for a compiler's error if there is little room for its files, or ``""``."""
    # A compiler that finds no room may say anything, and has removed its files by now.
    with contextlib.suppress(OSError):
        space = os.statvfs(directory)
        left = space.f_bavail * space.f_frsize
        if left < _LITTLE or (space.f_files and space.f_favail < _FEW):
            return (
                f"the disk of {directory} has room for only {left >> 10} KiB and {space.f_favail} "
                "files: set TMPDIR to another directory for the compiler's files"
            )
    return ""
