"""The kinds of entries: those with one file per entry, and the part shared with libraries."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from culaunch._cache.entry import BadEntryError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from culaunch._base.trusted import TrustedDirectory

T = TypeVar("T")
# An entry's time is updated if it is off by more, in either direction, because clocks may be set
# back.
_TOUCH_SECONDS = 1.0


class FileKind(Generic[T]):
    """Entries of one file each, right in the cache's directory.

    Parameters
    ----------
    suffix : str
        The file of a key is named by the key and this.
    pack, unpack : callable
        To an entry's bytes, and back; the latter raises BadEntryError.
    """

    def __init__(
        self,
        suffix: str,
        pack: Callable[[str, T], bytes],
        unpack: Callable[[str, bytes], T],
    ) -> None:
        self.suffix = suffix
        self.pack = pack
        self.unpack = unpack

    def name(self, key: str) -> str:
        """Return the name of the file of a key."""
        return key + self.suffix

    def read(self, directory: TrustedDirectory, key: str, *, own: bool = True) -> T | None:
        """Return the cached value of a key, or None.

        Parameters
        ----------
        directory : TrustedDirectory
            The directory to search.
        key : str
            The key.
        own : bool, optional
            Whether the directory may be written to. Then a use is recorded, and a bad entry is
            removed.

        Raises
        ------
        BadEntryError
            If the entry exists and is damaged.
        """
        name = self.name(key)
        found = directory.read(name)
        if found is None:
            return None
        entry, status = found
        try:
            value = self.unpack(key, entry)
        except BadEntryError:
            if own:
                drop_file(directory, name, status)
            raise
        # Record a use only of an intact entry, so a damaged one does not look used.
        if own:
            touch_file(directory, name, status)
        return value

    def check(self, directory: TrustedDirectory, name: str, *, drop: bool) -> bool:
        """Read a file; return whether it is intact. A removed file is not damaged."""
        found = directory.read(name)
        if found is None:
            return True
        entry, status = found
        try:
            self.unpack(name.removesuffix(self.suffix), entry)
        except BadEntryError:
            if drop:
                drop_file(directory, name, status)
            return False
        return True


def touch_file(directory: TrustedDirectory, name: str, status: os.stat_result) -> None:
    """Record that a file was used."""
    if abs(time.time() - status.st_mtime) > _TOUCH_SECONDS:
        directory.touch(name)


def drop_file(directory: TrustedDirectory, name: str, status: os.stat_result) -> None:
    """Remove the file that was read, but not a newer one in its place.

    Another process may have found the same file bad, dropped it and published a good one. The
    kernel has no atomic "remove this file if it is unchanged". Between the check and the removal, a
    good entry may therefore be lost. It is made again.
    """
    with contextlib.suppress(OSError):
        now = directory.status(name)
        if (now.st_ino, now.st_mtime_ns) == (status.st_ino, status.st_mtime_ns):
            directory.remove(name)
