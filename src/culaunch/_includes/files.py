"""Files as a scan sees them: each is read once, for as long as it stays the same file."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._includes.scanning import scan

if TYPE_CHECKING:
    from culaunch._includes.scanning import Scan

Identity = tuple[int, int, int, int, int]
"""Device, inode, size, time of modification and of change in nanoseconds."""

# A file that was changed so shortly before it was read may change again within its times.
_SETTLED_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000
_MAX_BYTES = 64 << 20
# Words that stand for the path of the file they are in, wherever they are expanded.
PLACE_WORDS = (
    "__FILE__",
    "__BASE_FILE__",
    "__FILE_NAME__",
    "__builtin_FILE",
    "__builtin_FILE_NAME",
    "__builtin_source_location",
    "source_location",
    "assert",
)
# Of these, the ones that a function can have as an argument's default: the file is its caller's.
CALLER_WORDS = frozenset(PLACE_WORDS[3:7])
_CALLER = re.compile(rf"\b(?:{'|'.join(CALLER_WORDS)})\b")


@dataclass(frozen=True)
class File:
    """What was in a file."""

    text: str
    digest: str
    scan: Scan
    names_caller: bool
    """Whether a function in it could have the place of its caller."""

    @classmethod
    def of(cls, data: bytes) -> File:
        """Read a file's bytes."""
        # Names of files are bytes; those that are no UTF-8 come back as they were.
        text = _decoded(data)
        found = _CALLER.search(text) is not None
        return cls(text, hashlib.sha256(data).hexdigest(), scan(text), found)


class _Known:
    """The files that this process has read: path to what each was and what was in it."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[Identity, File]] = {}
        self._size = 0

    def get(self, path: str, settled: Identity | None) -> File | None:
        known = self._files.get(path)
        return known[1] if known is not None and known[0] == settled else None

    def keep(self, path: str, settled: Identity, file: File) -> None:
        self._size += len(file.text)
        if self._size > _MAX_BYTES:
            self._files.clear()
            self._size = len(file.text)
        self._files[path] = settled, file


_known = _Known()


_MOST_DIGESTS = 1 << 14
_digests: dict[Identity, str] = {}


def identity(status: os.stat_result) -> Identity:
    """Return what tells a file from what else may come to have its path."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def settled_identity(status: os.stat_result, now: int) -> Identity | None:
    """Return the identity, or None when the file may change and keep it.

    That is so shortly after a change, and where the file system keeps no time of change in
    fractions of a second: such an image could be replaced by one that differs in contents alone.
    """
    return identity(status) if is_old(status, now) and status.st_ctime_ns % _SECOND_NS else None


def is_old(status: os.stat_result, now: int) -> bool:
    """Tell whether the last change is so long ago that the next one will have other times."""
    return now - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        # Names of files are bytes; those that are no UTF-8 come back as they were.
        return data.decode("utf-8", "surrogateescape")


def file_digest(path: str) -> str | None:
    """Return the SHA-256 of a file's contents, or None when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def known_digest(path: str, status: os.stat_result, now: int) -> str | None:
    """Return the SHA-256 of a file's contents, which is not computed twice in a process.

    Files whose identity is not kept (`settled_identity`) because their times have no fractions of a
    second, as those of many system images, are known again here: nothing exchanges such an image
    while a process runs.
    """
    key = identity(status)
    found = _digests.get(key) if is_old(status, now) else None
    if found is not None:
        return found
    digest = file_digest(path)
    if is_old(status, now) and digest is not None:
        with contextlib.suppress(OSError):
            if identity(os.stat(path)) == key:
                if len(_digests) >= _MOST_DIGESTS:
                    _digests.clear()
                _digests[key] = digest
    return digest


def read_file(path: str) -> tuple[File, os.stat_result, Identity | None] | None:
    """Read a regular file; give it, its status, and its identity if that is settled."""
    now = time.time_ns()
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return None
        settled = settled_identity(status, now)
        known = _known.get(path, settled)
        if known is not None:
            return known, status, settled
        with open(path, "rb") as opened:
            before = os.fstat(opened.fileno())
            file = File.of(opened.read())
            after = os.fstat(opened.fileno())
    except OSError:
        return None
    if settled is None or not identity(before) == identity(after) == settled:
        return file, after, None
    _known.keep(path, settled, file)
    return file, after, settled
