"""What a cache directory holds: images, libraries of ``load_inline``, and what dead writers left.

::

    <key>.entry                      a compiled image
    <key>.note                       what the headers of a source came to, and how to tell
    inline/<name>-<key>/<stem>.so    a library of load_inline,
    inline/<name>-<key>/<stem>.json  and what it was built from
    inline/<name>-<key>/<name>.cpp   its source (or .cu), for messages and debuggers
    .tmp-*                           files of writers, in any of these directories
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._base.trusted import TEMPORARY, TrustedDirectory

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

INLINE = "inline"
_SOURCES = (".cpp", ".cu")
_ENTRY = re.compile(r"[0-9a-f]{64}\.(?:entry|note)")
# No publishing takes this long: what is older was left by a writer that died.
_STALE_SECONDS = 3600.0
# An entry's time is refreshed when it is off by more, in either direction: clocks are set back.
_TOUCH_SECONDS = 1.0


@dataclass(frozen=True)
class Stored:
    """An entry: one file, or a library with its record."""

    folder: str
    """The directory in the cache's that it is in, or ``""``."""
    names: tuple[str, ...]
    size: int
    used: float

    @property
    def path(self) -> str:
        """Where its first file is in the cache."""
        return f"{self.folder}/{self.names[0]}" if self.folder else self.names[0]

    @property
    def is_note(self) -> bool:
        """Whether it only saves work, and stands for nothing by itself."""
        return self.names[0].endswith(".note")

    @property
    def is_library(self) -> bool:
        """Whether it is a library of ``load_inline``."""
        return self.names[0].endswith(".so")


def entry_name(key: str) -> str:
    """Return the name of the entry of a key."""
    return f"{key}.entry"


def note_name(key: str) -> str:
    """Return the name of the note of a key."""
    return f"{key}.note"


def key_of(stored: Stored) -> str:
    """Return the key of an image's entry."""
    return stored.names[0].removesuffix(".entry")


def touch_entry(directory: TrustedDirectory, name: str, status: os.stat_result) -> None:
    """Note that an entry was used."""
    if abs(time.time() - status.st_mtime) > _TOUCH_SECONDS:
        directory.touch(name)


def drop_entry(directory: TrustedDirectory, name: str, status: os.stat_result) -> None:
    """Remove the file that was read, but not one that was put in its place since."""
    with contextlib.suppress(OSError):
        now = directory.status(name)
        if (now.st_ino, now.st_mtime_ns) == (status.st_ino, status.st_mtime_ns):
            directory.remove(name)


def list_entries(directory: TrustedDirectory) -> list[Stored]:
    """List the entries of a cache, least recently used first."""
    found = [
        Stored("", (name,), status.st_size, status.st_mtime)
        for name, status in directory.files()
        if _ENTRY.fullmatch(name) is not None
    ]
    for folder, inside in _folders(directory):
        files = dict(inside.files())
        for name, status in files.items():
            if name.endswith(".so"):
                record = name.removesuffix(".so") + ".json"
                names = (name, record) if record in files else (name,)
                size = sum(files[one].st_size for one in names)
                found.append(Stored(folder, names, size, status.st_mtime))
    return sorted(found, key=lambda entry: entry.used)


def list_temporaries(directory: TrustedDirectory) -> list[Stored]:
    """List the files of writers, dead or alive."""
    found = _temporaries("", directory)
    for folder, inside in _folders(directory):
        found += _temporaries(folder, inside)
    return found


def remove_entry(directory: TrustedDirectory, entry: Stored) -> bool:
    """Remove an entry; return whether it was there."""
    if not entry.folder:
        return directory.remove(entry.names[0])
    with contextlib.suppress(OSError), _inline(directory) as inline:
        with inline.sub(entry.folder.partition("/")[2]) as folder:
            # The record first: a library without one is not found, and does no harm.
            removed = [folder.remove(name) for name in reversed(entry.names)]
            left = [name for name, _ in folder.files()]
            if not any(name.endswith((".so", ".json")) for name in left):
                for name in left:
                    if name.endswith(_SOURCES):
                        folder.remove(name)
        inline.remove_directory(entry.folder.partition("/")[2])
        return removed[-1]
    return False


def is_library_intact(directory: TrustedDirectory, entry: Stored) -> bool:
    """Tell whether a library is what its record says; one without a record is never used."""
    try:
        with _inline(directory) as inline, inline.sub(entry.folder.partition("/")[2]) as folder:
            library, record = (folder.read(name) for name in entry.names)
    except (OSError, ValueError):
        return False
    if library is None or record is None:
        return False
    try:
        return bool(json.loads(record[0])["sha256"] == hashlib.sha256(library[0]).hexdigest())
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def evict(directory: TrustedDirectory, max_bytes: int, keep: str) -> int:
    """Remove what was not used longest until the rest fits; return the size of the rest.

    Parameters
    ----------
    directory : TrustedDirectory
        The cache's.
    max_bytes : int
        The cap. One that is passed is undershot by a tenth, so that the next call has room.
    keep : str
        The path in the cache of what was just published: it stays whatever the clock says.
    """
    left = remove_stale_temporaries(directory)
    entries = list_entries(directory)
    total = left + sum(entry.size for entry in entries)
    if total <= max_bytes:
        return total
    for entry in entries:
        if total <= max_bytes * 9 // 10:
            break
        if entry.path != keep and remove_entry(directory, entry):
            total -= entry.size
    return total


def remove_stale_temporaries(directory: TrustedDirectory, older: float = _STALE_SECONDS) -> int:
    """Remove what dead writers left behind; return the bytes of what is not that old."""
    now = time.time()
    left = 0
    for item in list_temporaries(directory):
        if abs(now - item.used) < older or not remove_entry(directory, item):
            left += item.size
    return left


def _temporaries(folder: str, directory: TrustedDirectory) -> list[Stored]:
    return [
        Stored(folder, (name,), status.st_size, status.st_mtime)
        for name, status in directory.files()
        if name.startswith(TEMPORARY)
    ]


def _inline(directory: TrustedDirectory) -> TrustedDirectory:
    return directory.sub(INLINE)


def _folders(directory: TrustedDirectory) -> Iterator[tuple[str, TrustedDirectory]]:
    try:
        inline = _inline(directory)
    except OSError:
        return
    with inline:
        for name in inline.directories():
            with contextlib.suppress(OSError), inline.sub(name) as folder:
                yield f"{INLINE}/{name}", folder
