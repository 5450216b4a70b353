"""Libraries of ``load_inline`` by content, with the headers that each was built from.

A directory for each key (sources, images, flags, compiler) holds one library, and one record
beside it, for each set of header contents that was met. The record lists the headers with their
hashes, and the places where the compiler looked and found none: one that appears there may win.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from culaunch._base.trusted import TrustedDirectory
from culaunch._cache.lock import lock_key
from culaunch._cache.place import default_max_bytes, default_path
from culaunch._cache.store import INLINE, evict, touch_entry
from culaunch._errors import CacheWarning

if TYPE_CHECKING:
    from collections.abc import Callable

_SCHEMA = 2
# Seconds that a build of the same by another process is waited for.
_LONGEST_BUILD = 3600.0


class Reads(Protocol):
    """What a build read of the disk, as the room that follows headers knows it."""

    @property
    def state(self) -> str:
        """What tells the contents that were read from other contents of the same headers."""

    def is_current(self) -> bool:
        """Tell whether a compiler would read the same now as it did."""

    def as_json(self) -> Any:
        """Return it as JSON can hold it."""


@dataclass(frozen=True)
class Entry:
    """A library, and what it was built from."""

    library: str
    sha256: str
    reads: Reads
    temporary: str | None = None

    def loaded(self) -> None:
        """Clean up after the library was loaded from a place of its own."""
        if self.temporary is not None:
            shutil.rmtree(self.temporary, ignore_errors=True)


@dataclass(frozen=True)
class Libraries:
    """The entries of one key."""

    root: str
    """The user's cache, or the directory that the caller named."""
    folders: tuple[str, ...]
    """Where the entries are in it."""
    name: str
    key: str
    reads_of: Callable[[Any], Reads]
    """Makes them of what ``as_json`` gave; ValueError or TypeError if it is something else."""

    @classmethod
    def at(
        cls,
        build_directory: str | os.PathLike[str] | None,
        name: str,
        key: str,
        reads_of: Callable[[Any], Reads],
    ) -> Libraries:
        """Return those in a directory, by default in this user's cache."""
        folder = f"{name[:64]}-{key[:32]}"
        if build_directory is None:
            return cls(os.path.abspath(default_path()), (INLINE, folder), name, key, reads_of)
        root = os.path.abspath(os.fsdecode(build_directory))
        return cls(root, (folder,), name, key, reads_of)

    @property
    def directory(self) -> str:
        """The directory of the entries."""
        return os.path.join(self.root, *self.folders)

    def find(self) -> Entry | None:
        """Return an entry whose headers are as they are now."""
        try:
            with self._open() as directory:
                for name, _ in sorted(directory.files()):
                    entry = self._read(directory, name) if name.endswith(".json") else None
                    if entry is not None and entry.reads.is_current():
                        return entry
        except OSError:
            pass
        return None

    def build(self, builder: Callable[[str], tuple[str, Reads]]) -> Entry:
        """Build an entry, while other processes that want the same wait for it.

        It is built in a temporary directory and then brought here: nobody else can put something
        among the compiler's files, and what is built can be loaded from there if it does not fit.
        """
        place = os.path.realpath(tempfile.mkdtemp(prefix="culaunch-"))
        entry = None
        try:
            with self._locked():
                if (found := self.find()) is not None:
                    return found
                library, reads = builder(place)
                entry = Entry(library, _hash(library), reads, temporary=place)
                if not entry.reads.is_current():
                    # A header was changed meanwhile, or what was read is not known.
                    return entry
                try:
                    kept = self._publish(entry)
                except OSError as error:
                    # Others may write there, a full disk, a quota.
                    self._warn(error)
                    return entry
                entry = None
                return kept
        finally:
            if entry is None:
                shutil.rmtree(place, ignore_errors=True)

    def _open(self, *, make: bool = False) -> TrustedDirectory:
        directory = TrustedDirectory.open(self.root, make=make)
        for folder in self.folders:
            with directory as above:
                directory = above.sub(folder, make=make)
        return directory

    def _locked(self) -> contextlib.AbstractContextManager[object]:
        try:
            self._open(make=True).close()
        except OSError:
            # Nothing will be found there, and whoever can write there could hold a lock for ever.
            return contextlib.nullcontext()
        return lock_key(os.path.join(self.root, ".lock"), self.key, _LONGEST_BUILD)

    def _publish(self, built: Entry) -> Entry:
        stem = f"{self.name[:64]}-{built.reads.state[:16]}"
        record = {"schema": _SCHEMA, "sha256": built.sha256, "reads": built.reads.as_json()}
        text = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogateescape")
        with open(built.library, "rb") as file:
            library = file.read()
        with self._open(make=True) as directory:
            for suffix in (".cpp", ".cu"):
                # For messages and debuggers; all libraries of a key have the same.
                source = os.path.join(os.path.dirname(built.library), self.name + suffix)
                if os.path.exists(source):
                    with open(source, "rb") as file:
                        directory.publish(self.name + suffix, file.read())
            directory.publish(f"{stem}.so", library)
            # Without its record a library is not found again.
            directory.publish(f"{stem}.json", text)
            path = directory.lasting_path(f"{stem}.so")
        if self.folders[0] == INLINE:
            with TrustedDirectory.open(self.root) as cache:
                evict(cache, default_max_bytes(), keep="/".join([*self.folders, f"{stem}.so"]))
        return Entry(path, built.sha256, built.reads)

    def _warn(self, error: OSError) -> None:
        why = error.strerror or str(error)
        if isinstance(error.filename, str):
            why = f"{error.filename}: {why}"
        warnings.warn(
            f"what is compiled cannot be kept in {self.directory} ({why}): it is compiled again "
            "by the next process; CULAUNCH_CACHE_DIR or build_directory= names another directory",
            CacheWarning,
            stacklevel=4,
        )

    def _read(self, directory: TrustedDirectory, name: str) -> Entry | None:
        found = directory.read(name)
        library_name = name.removesuffix(".json") + ".so"
        library = directory.read(library_name)
        if found is None or library is None:
            return None
        try:
            record = json.loads(found[0].decode("utf-8", "surrogateescape"))
            if record["schema"] != _SCHEMA:
                return None
            reads = self.reads_of(record["reads"])
            # A library that is not what was written is not loaded: it is built again.
            if hashlib.sha256(library[0]).hexdigest() != record["sha256"]:
                return None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        touch_entry(directory, library_name, library[1])
        return Entry(directory.lasting_path(library_name), record["sha256"], reads)


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
