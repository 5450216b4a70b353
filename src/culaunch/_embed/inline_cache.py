"""What was built before: libraries by content, with the headers that each was built from.

A directory for each key (sources, images, flags, compiler) holds one library, and one record
beside it, for each set of header contents that was met. The record lists the headers with their
hashes. A header whose size, inode and times are as they were is not read again: its change time
cannot be set back, as its modification time can.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._errors import CacheWarning, InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SCHEMA = 1
# A file that was changed so shortly before it was hashed may change again within its times.
_SETTLED_NS = 2_000_000_000

Signature = list[int]


@dataclass(frozen=True)
class Entry:
    """A library, and the headers that it was built from: path, hash, and facts of the file."""

    library: str
    sha256: str
    headers: list[tuple[str, str, Signature | None]]
    temporary: str | None = None

    def is_current(self) -> bool:
        """Tell whether every header still has the content it was built from."""
        return all(
            (signature is not None and _signature(path) == signature) or _hash(path) == digest
            for path, digest, signature in self.headers
        )

    def loaded(self) -> None:
        """Clean up after the library was loaded from a place of its own."""
        if self.temporary is not None:
            shutil.rmtree(self.temporary, ignore_errors=True)


@dataclass(frozen=True)
class InlineCache:
    """The entries of one key."""

    directory: str
    name: str
    is_private: bool

    @classmethod
    def at(cls, build_directory: str | os.PathLike[str] | None, name: str, key: str) -> InlineCache:
        """Return the cache in a directory, by default in this user's."""
        if build_directory is None:
            root = os.path.join(_user_directory(), "inline")
        else:
            root = os.path.abspath(os.fsdecode(build_directory))
        directory = os.path.join(root, f"{name[:64]}-{key[:32]}")
        return cls(directory, name, build_directory is None)

    def find(self) -> Entry | None:
        """Return an entry whose headers are as they are now."""
        try:
            if self._why_not():
                return None
            names = sorted(name for name in os.listdir(self.directory) if name.endswith(".json"))
        except OSError:
            return None
        for name in names:
            entry = self._read(os.path.join(self.directory, name))
            if entry is not None and entry.is_current():
                return entry
        return None

    def build(self, builder: Callable[[str], tuple[str, list[str]]]) -> Entry:
        """Build an entry, while other processes that want the same wait for it."""
        try:
            # One by one: only the last gets the mode.
            for path in (*((_user_directory(),) if self.is_private else ()), self.directory):
                os.makedirs(path, mode=0o700, exist_ok=True)
            why_not = self._why_not()
            place = tempfile.mkdtemp(prefix=".build-", dir=None if why_not else self.directory)
        except OSError as error:
            why_not = error.strerror or str(error)
            place = tempfile.mkdtemp(prefix="culaunch-")
        place = os.path.realpath(place)
        entry = None
        try:
            if why_not:
                entry = _entry(*builder(place), temporary=place)
                self._warn(why_not)
                return entry
            with _locked(os.path.join(self.directory, "lock")):
                if (found := self.find()) is not None:
                    return found
                built = _entry(*builder(place), temporary=place)
                try:
                    return self._publish(built)
                except OSError as error:
                    # A full disk, a quota: what was built is there, and is loaded from there.
                    entry = built
                    self._warn(error.strerror or str(error))
                    return entry
        finally:
            if entry is None:
                shutil.rmtree(place, ignore_errors=True)

    def _publish(self, built: Entry) -> Entry:
        variant = hashlib.sha256(json.dumps([h[:2] for h in built.headers]).encode()).hexdigest()
        stem = os.path.join(self.directory, f"{self.name[:64]}-{variant[:16]}")
        record = {"schema": _SCHEMA, "sha256": built.sha256, "headers": built.headers}
        temporary = f"{built.library}.json"
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump(record, file, ensure_ascii=False)
        _sync(temporary)
        _sync(built.library)
        os.replace(built.library, f"{stem}.so")
        # Without its record a library is not found again, and does no harm.
        with contextlib.suppress(OSError):
            os.replace(temporary, f"{stem}.json")
        return Entry(f"{stem}.so", built.sha256, built.headers)

    def _why_not(self) -> str | None:
        """Return why this user's cache must not be used: others could put code into it."""
        if not self.is_private:
            return None
        for path in (_user_directory(), self.directory):
            facts = os.stat(path)
            if facts.st_uid != os.geteuid():
                return f"{path} belongs to user {facts.st_uid}"
            if facts.st_mode & 0o022:
                return f"others may write to {path}: chmod go-w"
        return None

    def _warn(self, why: str) -> None:
        warnings.warn(
            f"what is compiled cannot be kept in {self.directory} ({why}): it is compiled again "
            "by the next process; CULAUNCH_CACHE_DIR names another directory",
            CacheWarning,
            stacklevel=4,
        )

    def _read(self, path: str) -> Entry | None:
        library = path.removesuffix(".json") + ".so"
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                record = json.load(file)
            if record["schema"] != _SCHEMA:
                return None
            entry = Entry(library, record["sha256"], [(a, b, c) for a, b, c in record["headers"]])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # A library that is not what was written is not loaded: it is built again.
        return entry if _hash(library) == entry.sha256 else None


def _entry(library: str, headers: list[str], temporary: str) -> Entry:
    now = time.time_ns()
    facts: list[tuple[str, str, Signature | None]] = []
    for path in headers:
        signature = _signature(path)
        digest = _hash(path)
        if digest is None or signature is None:
            raise InternalError(f"the compiler read {path}, which is not there")
        settled = now - max(signature[2], signature[3]) > _SETTLED_NS
        facts.append((path, digest, signature if settled else None))
    digest = _hash(library)
    assert digest is not None
    return Entry(library, digest, facts, temporary)


def _user_directory() -> str:
    chosen = os.environ.get("CULAUNCH_CACHE_DIR")
    if chosen:
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "culaunch")


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    """Hold a lock that dies with its process. Without locks the result is the same, only later."""
    with open(path, "ab") as file:
        with contextlib.suppress(ImportError, OSError):
            import fcntl  # not on every system

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _signature(path: str) -> Signature | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return [facts.st_size, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_dev]


def _hash(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def _sync(path: str) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
