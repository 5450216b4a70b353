"""Files by their identity: each is read once, as long as it stays the same file."""

from __future__ import annotations

import contextlib
import hashlib
import os

Identity = tuple[int, int, int, int, int]
"""Device, inode, size, time of modification and of change in nanoseconds."""

# A file that was changed so shortly before it was read may change again within its times.
_SETTLED_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000

_MOST_DIGESTS = 1 << 14
_digests: dict[Identity, str] = {}


def identity(status: os.stat_result) -> Identity:
    """Return the identity of a file, which differs for another file at the same path."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def settled_identity(status: os.stat_result, now: int) -> Identity | None:
    """Return the identity, or None when the file may change and keep it.

    None is returned shortly after a change, and if the file system has no fractions of a second in
    its change times. Another file with the same identity may then replace the image.
    """
    return identity(status) if is_old(status, now) and status.st_ctime_ns % _SECOND_NS else None


def is_old(status: os.stat_result, now: int) -> bool:
    """Tell whether the last change is so long ago that the next one will have other times."""
    return now - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS


def file_digest(path: str) -> str | None:
    """Return the SHA-256 of a file's contents, or None when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def known_digest(path: str, status: os.stat_result, now: int) -> str | None:
    """Return the SHA-256 of a file's contents, which is not computed twice in a process.

    Some files have change times without fractions of a second, for example in many system images,
    and their identity is not kept (`settled_identity`). They are also cached here: nobody replaces
    these while a process runs.
    """
    key = identity(status)
    # A file may change again within two seconds with the same times, because file systems use
    # coarse timestamps, some of whole seconds.
    found = _digests.get(key) if is_old(status, now) else None
    if found is not None:
        return found
    digest = file_digest(path)
    if is_old(status, now) and digest is not None:
        with contextlib.suppress(OSError):
            # The file did not change while it was read.
            if identity(os.stat(path)) == key:
                if len(_digests) >= _MOST_DIGESTS:
                    _digests.clear()
                _digests[key] = digest
    return digest
