"""Temporary files of writers that were never renamed."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, NamedTuple

from culaunch._base.trusted import TEMPORARY
from culaunch._cache.library import INLINE, is_source, library_folders, remove_if_bare

if TYPE_CHECKING:
    from culaunch._base.trusted import TrustedDirectory


class Leftovers(NamedTuple):
    """The number and size of these files, now and before."""

    files: int
    """Number of files that are left."""
    size: int
    """Their size in bytes."""
    removed: int


def sweep(directory: TrustedDirectory, *, older: float) -> Leftovers:
    """Remove the files of dead writers; return those, and the files that are left.

    Parameters
    ----------
    directory : TrustedDirectory
        The cache's.
    older : float
        Seconds: what was written longer ago is removed. Nothing tells a writer that is at work
        from one that died but the time. A clock that was set back makes a file of the future,
        which is as old as it is far away.
    """
    left = _sweep(directory, older)
    bare = []
    for folder, inside in library_folders(directory):
        one = _sweep(inside, older)
        left = Leftovers(*(a + b for a, b in zip(left, one, strict=True)))
        if one.removed or _has_only_sources(inside, older):
            bare.append(folder.partition("/")[2])
    if bare:
        # A writer that died before it published its library leaves its directory, too.
        with contextlib.suppress(OSError), directory.sub(INLINE) as inline:
            for name in bare:
                remove_if_bare(inline, name)
    return left


def _has_only_sources(folder: TrustedDirectory, older: float) -> bool:
    """Tell whether the publisher of a library's sources died before it published the library."""
    now = time.time()
    return all(
        is_source(name) and abs(now - status.st_mtime) >= older for name, status in folder.files()
    )


def _sweep(directory: TrustedDirectory, older: float) -> Leftovers:
    now = time.time()
    files = size = removed = 0
    for name, status in directory.files():
        if not name.startswith(TEMPORARY):
            continue
        if abs(now - status.st_mtime) >= older and directory.remove(name):
            removed += 1
        else:
            files, size = files + 1, size + status.st_size
    return Leftovers(files, size, removed)
