"""The directory of a cache: ``culaunch/jit/store/cache_contents.h`` describes its contents."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from culaunch._base.fork_lock import ForkLock
from culaunch._base.trusted import TrustedDirectory
from culaunch._cache.image import IMAGES
from culaunch._cache.library import INLINE, LIBRARIES
from culaunch._cache.lock import lock_key
from culaunch._cache.note import NOTES
from culaunch._core import cache_contents, clear_cache, evict

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_RECOUNT = 64
_RECOUNT_SECONDS = 10.0


class Stored(NamedTuple):
    """A stored entry: one file, or several files that belong together."""

    folder: str
    """The directory in ``inline`` that it is in, or ``""``."""
    names: tuple[str, ...]
    size: int
    """In bytes."""
    used: int
    """When it was used last, in nanoseconds since the epoch: the order of eviction."""

    @property
    def path(self) -> str:
        """The path of its first file in the cache."""
        return f"{INLINE}/{self.folder}/{self.names[0]}" if self.folder else self.names[0]

    @property
    def is_note(self) -> bool:
        """Whether it only saves work, and does not count as an entry."""
        return self.names[0].endswith(NOTES.suffix)

    def check(self, directory: TrustedDirectory, *, drop: bool) -> bool:
        """Read it; return whether it is intact, and remove it if it is not."""
        if self.folder:
            return LIBRARIES.check(directory, self.folder, self.names, drop=drop)
        (name,) = self.names
        return (NOTES if self.is_note else IMAGES).check(directory, name, drop=drop)


class Contents(NamedTuple):
    """The entries in a directory, and the files of writers that still run or were killed."""

    entries: tuple[Stored, ...]
    """The least recently used first."""
    temporary_files: int
    temporary_size: int
    """In bytes."""


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
        """Open the directory, or one below it; create missing ones, or raise FileNotFoundError."""
        try:
            directory = TrustedDirectory.open(self.path)
        except FileNotFoundError:
            if not make:
                raise
            # Look for it first, because creating it touches every parent directory.
            directory = TrustedDirectory.open(self.path, make=True)
        for folder in folders:
            with directory as above:
                directory = above.sub(folder, make=make)
        return directory

    def lock(self, key: str, timeout: float) -> AbstractContextManager[bool]:
        """Hold the lock of a key, among all users of this directory."""
        return lock_key(os.path.join(self.path, ".lock"), key, timeout)

    def publish(self, name: str, entry: bytes) -> None:
        """Publish a file of an entry, and count it."""
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
            # Add this process's entries to the total. Only other processes' entries require reading
            # the directory.
            self._size = None if self._size is None else self._size + size
            self._stored += 1
            # Other processes store entries as well, so compute the total again now and then.
            is_old = (
                self._stored % _RECOUNT == 0
                or time.monotonic() >= self._counted_at + _RECOUNT_SECONDS
            )
            if self._size is None or is_old or self._size > self.max_bytes:
                with self.open():
                    self._size = evict(self.path, min(self.max_bytes, sys.maxsize), path)
                self._counted_at = time.monotonic()

    def look(self, *, make: bool = True) -> Contents:
        """Return the entries and the temporary files."""
        with self.open(make=make):
            entries, files, size = cache_contents(self.path)
        return Contents(tuple(Stored(*one) for one in entries), files, size)

    def verify(self, *, drop: bool) -> list[str]:
        """Read every entry; return the paths of damaged ones."""
        found = self.look(make=False)
        with self.open(make=False) as directory:
            return [
                os.path.join(self.path, stored.path)
                for stored in found.entries
                if not stored.check(directory, drop=drop)
            ]

    def clear(self) -> int:
        """Remove everything; return the number of removed entries."""
        import shutil

        with self.open(make=False):
            removed = clear_cache(self.path)
            shutil.rmtree(os.path.join(self.path, "headers"), ignore_errors=True)
        self._size = None
        return removed
