"""Which entries a program used: what :meth:`culaunch.cache.Cache.bundle` packs."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import warnings

try:
    import fcntl
except ImportError:  # not Unix
    fcntl = None  # type: ignore[assignment]

from culaunch._cache.entry import KEY
from culaunch._errors import CacheWarning

VARIABLE = "CULAUNCH_CACHE_RECORD"
_LIBRARY = re.compile(r"inline/[A-Za-z0-9_]{1,64}-[0-9a-f]{32}/[A-Za-z0-9_]{1,64}-[0-9a-f]{16}")

_noted: set[tuple[str, str]] = set()
_failed: set[tuple[str, str]] = set()


def record_use(key: str) -> None:
    """Append a used key to the file that the environment names, if any."""
    path = os.environ.get(VARIABLE)
    # Write one line for each key and process, so repeated cache lookups of a launch write nothing.
    if not path or (path, key) in _noted:
        return
    _noted.add((path, key))
    try:
        # Many processes append to one file, so each line is a single write.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _append(descriptor, f"{key}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        _noted.discard((path, key))  # there may be room at its next use
        reason = error.strerror or str(error)
        if (path, reason) in _failed:
            return
        _failed.add((path, reason))
        warnings.warn(
            f"cannot record the use of the cache in {VARIABLE}={path!r}: {reason}",
            CacheWarning,
            stacklevel=4,
        )


def _append(descriptor: int, line: bytes) -> None:
    """Append a line completely or not at all."""
    if fcntl is not None:
        # On a file system without locks, a line may be cut off, and the record is refused.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    before = os.fstat(descriptor)
    written = os.write(descriptor, line)
    if written < len(line):
        # An incomplete line would also damage the next one.
        if stat.S_ISREG(before.st_mode):
            os.ftruncate(descriptor, before.st_size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_record(path: str) -> list[str]:
    """Return the distinct keys of a record, and the distinct places of libraries in the cache.

    Raises
    ------
    ValueError
        If it is not a record.
    OSError
        If it cannot be read.
    """
    with open(path, encoding="ascii", errors="replace") as file:
        keys = dict.fromkeys(line.strip() for line in file)
    for key in keys:
        if KEY.fullmatch(key) is None and _LIBRARY.fullmatch(key) is None:
            raise ValueError(f"{path!r} is not a cache record: it has the line {key!r:.80}")
    return list(keys)
