"""The directory of a cache: entries of every kind, and the temporary files of dead writers.

::

    <key>.entry   a compiled image
    <key>.note    the contents of a source's headers, and how to check them
    inline/...    libraries of load_inline (see ``library``)
    headers/...   headers of a compiler, unpacked
    .lock         one byte for each key (see ``lock``)
    .tmp-*        temporary files of writers, in any of these directories
"""

from __future__ import annotations

import math
import os
import shutil
import time
from typing import TYPE_CHECKING

from culaunch._base.fork_lock import ForkLock
from culaunch._base.trusted import TrustedDirectory
from culaunch._cache.image import IMAGES
from culaunch._cache.leftovers import sweep
from culaunch._cache.library import LIBRARIES
from culaunch._cache.lock import lock_key
from culaunch._cache.note import NOTES

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from culaunch._cache.kind import Kind, Stored
    from culaunch._cache.leftovers import Leftovers

KINDS: tuple[Kind, ...] = (IMAGES, NOTES, LIBRARIES)
_RECOUNT = 64
_RECOUNT_SECONDS = 10.0
# No publishing takes this long: what is older was left by a writer that died.
_STALE_SECONDS = 3600.0


class Store:
    """A directory of entries with a limit on its size.

    Every use opens and checks it again: another directory may take its place while a program runs.
    An unusable directory raises OSError; the caller decides how to report that.

    Parameters
    ----------
    path : str
        The directory.
    max_bytes : int or None
        The limit; None to remove nothing.
    """

    def __init__(self, path: str, max_bytes: int | None) -> None:
        self.path = path
        self.max_bytes = max_bytes
        # Unknown until the first publication: a process that only reads never lists the directory.
        self._size: int | None = None
        self._stored = 0
        self._counted_at = 0.0
        self._size_lock = ForkLock()

    def open(self, *folders: str, make: bool = True) -> TrustedDirectory:
        """Open the directory, or one below it; make what is missing, or raise FileNotFoundError."""
        try:
            directory = TrustedDirectory.open(self.path)
        except FileNotFoundError:
            if not make:
                raise
            # Looked for first: making it touches every directory above.
            directory = TrustedDirectory.open(self.path, make=True)
        for folder in folders:
            with directory as above:
                directory = above.sub(folder, make=make)
        return directory

    def lock(self, key: str, timeout: float) -> AbstractContextManager[bool]:
        """Hold the lock of a key, among all that use this directory."""
        return lock_key(os.path.join(self.path, ".lock"), key, timeout)

    def publish(self, name: str, entry: bytes) -> None:
        """Put a file of an entry in place, and count it."""
        with self.open() as directory:
            try:
                directory.publish(name, entry)
            except FileNotFoundError:
                # The whole directory was removed after it was opened.
                with self.open() as again:
                    again.publish(name, entry)
        self.count(name, len(entry))

    def count(self, path: str, size: int) -> None:
        """Keep a running total, to read the directory only if it may be too full.

        Parameters
        ----------
        path : str
            The path in the directory of the new entry, which must not be evicted.
        size : int
            The size of the entry in bytes.
        """
        if self.max_bytes is None:
            return
        with self._size_lock:
            # Add the entries of this process to the total. Only entries of other processes need a
            # look at the directory.
            self._size = None if self._size is None else self._size + size
            self._stored += 1
            # Other processes store entries as well, so compute the total again now and then.
            is_old = (
                self._stored % _RECOUNT == 0
                or time.monotonic() >= self._counted_at + _RECOUNT_SECONDS
            )
            if self._size is None or is_old or self._size > self.max_bytes:
                with self.open() as directory:
                    self._size = _evict(directory, self.max_bytes, keep=path)
                self._counted_at = time.monotonic()

    def look(self) -> tuple[list[Stored], Leftovers]:
        """Return the entries, and what writers left that are at work or died."""
        with self.open() as directory:
            return _entries(directory), sweep(directory, older=math.inf)

    def verify(self, *, drop: bool) -> list[str]:
        """Read every entry; return the paths of damaged ones."""
        with self.open(make=False) as directory:
            return [
                os.path.join(self.path, stored.path)
                for stored in _entries(directory)
                if not stored.kind.check(directory, stored, drop=drop)
            ]

    def clear(self) -> int:
        """Remove all there is; return how many entries there were that count."""
        removed = 0
        with self.open(make=False) as directory:
            # Temporary files go first: a directory that contains one cannot be removed.
            sweep(directory, older=0.0)
            for stored in _entries(directory):
                removed += stored.kind.remove(directory, stored) and stored.kind.counts
            shutil.rmtree(os.path.join(self.path, "headers"), ignore_errors=True)
        self._size = None
        return removed


def _entries(directory: TrustedDirectory) -> list[Stored]:
    """List the entries, least recently used first."""
    found = [stored for kind in KINDS for stored in kind.list_in(directory)]
    # By the time of the last use, which reading an entry renews (`touch_file`): the order of
    # eviction.
    return sorted(found, key=lambda stored: stored.used)


def _evict(directory: TrustedDirectory, max_bytes: int, keep: str) -> int:
    """Evict the least recently used entries until the rest fits; return the size of the rest.

    Eviction goes a tenth below the limit, to make room for the next calls. The entry that was just
    published (`keep`) stays in any case.
    """
    # Files of dead writers go first: nobody needs them. Files of live writers count, too.
    left = sweep(directory, older=_STALE_SECONDS)
    entries = _entries(directory)
    total = left.size + sum(entry.size for entry in entries)
    if total <= max_bytes:
        return total
    for entry in entries:
        if total <= max_bytes * 9 // 10:
            break
        if entry.path != keep and entry.kind.remove(directory, entry):
            total -= entry.size
    return total
