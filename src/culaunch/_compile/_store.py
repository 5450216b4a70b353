"""A directory of cache entries: who owns it, reading, publishing, eviction."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENTRY = re.compile(r"(?P<key>[0-9a-f]{64})\.entry")
_TEMPORARY = ".tmp-"
# No publishing takes this long: what is older was left by a writer that died.
_STALE_SECONDS = 3600.0
# An entry's time is refreshed when it is off by more, in either direction: clocks are set back.
_TOUCH_SECONDS = 60.0


@dataclass(frozen=True)
class Stored:
    """An entry's file."""

    key: str
    path: str
    size: int
    used: float


def prepare_directory(path: str) -> str | None:
    """Make the directory if it is not there; give None, or why it must not be used.

    What is in the cache is run on a GPU: nobody else may be able to put something there.
    """
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        link = os.lstat(path)
        found = os.stat(path)
    except FileExistsError:
        return "it is not a directory"
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a directory"
    user = os.geteuid()
    if stat.S_ISLNK(link.st_mode) and link.st_uid != user:
        return f"it is a symbolic link that belongs to user {link.st_uid}, not {user}"
    if found.st_uid != user:
        return f"it belongs to user {found.st_uid}, not {user}"
    if found.st_mode & 0o022:
        return f"others may write to it (mode {stat.S_IMODE(found.st_mode):04o}; chmod go-w)"
    return None


def entry_path(directory: str, key: str) -> str:
    """Give where the entry of a key lies."""
    return os.path.join(directory, f"{key}.entry")


def read_entry(path: str) -> tuple[bytes, os.stat_result] | None:
    """Read an entry's file, or give None when there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        parts = []
        # Until the end: a signal or a network mount may give less than was asked for.
        while part := os.read(descriptor, max(status.st_size, 1)):
            parts.append(part)
        return b"".join(parts), status
    except OSError:
        return None
    finally:
        os.close(descriptor)


def touch_entry(path: str, status: os.stat_result) -> None:
    """Note that an entry was used."""
    if abs(time.time() - status.st_mtime) > _TOUCH_SECONDS:
        with contextlib.suppress(OSError):
            os.utime(path)


def drop_entry(path: str, status: os.stat_result) -> None:
    """Remove the file that was read, but not one that was put in its place since."""
    with contextlib.suppress(OSError):
        now = os.lstat(path)
        if (now.st_ino, now.st_mtime_ns) == (status.st_ino, status.st_mtime_ns):
            os.unlink(path)


def publish_entry(path: str, entry: bytes) -> None:
    """Put an entry in place, whole or not at all.

    Raises
    ------
    OSError
        If it could not be written; nothing is left behind then.
    """
    directory = os.path.dirname(path)
    temporary = os.path.join(directory, f"{_TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, 0o600)
    try:
        try:
            view = memoryview(entry)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_directory(directory)


def list_entries(directory: str) -> list[Stored]:
    """List the entries of a directory, least recently used first."""
    found = [
        Stored(match["key"], item.path, status.st_size, status.st_mtime)
        for item, status in _files(directory)
        if (match := _ENTRY.fullmatch(item.name)) is not None
    ]
    return sorted(found, key=lambda entry: entry.used)


def evict(directory: str, max_bytes: int, keep: str) -> int:
    """Remove what was not used longest until the rest fits; give the size of the rest.

    Parameters
    ----------
    directory : str
        The directory.
    max_bytes : int
        The cap. One that is passed is undershot by a tenth, so that the next call has room.
    keep : str
        The key that was just published: it stays whatever the clock says.
    """
    remove_stale_temporaries(directory)
    entries = list_entries(directory)
    total = sum(entry.size for entry in entries)
    if total <= max_bytes:
        return total
    for entry in entries:
        if total <= max_bytes * 9 // 10:
            break
        if entry.key != keep:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
                total -= entry.size
    return total


def remove_stale_temporaries(directory: str, older: float = _STALE_SECONDS) -> None:
    """Remove what dead writers left behind."""
    now = time.time()
    for item, status in _files(directory):
        if item.name.startswith(_TEMPORARY) and abs(now - status.st_mtime) >= older:
            with contextlib.suppress(OSError):
                os.unlink(item.path)


def _files(directory: str) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
    try:
        with os.scandir(directory) as items:
            for item in items:
                with contextlib.suppress(OSError):
                    if item.is_file(follow_symlinks=False):
                        yield item, item.stat(follow_symlinks=False)
    except OSError:
        return


def _sync_directory(directory: str) -> None:
    # Without it a power failure may take the rename back; the entry is then merely not there.
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
