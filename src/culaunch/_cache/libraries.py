"""The library that ``load_inline`` builds for a key: found, or built by one process for all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from culaunch._base.scratch import Scratch
from culaunch._base.trusted import TrustedDirectory
from culaunch._cache.library import INLINE, LIBRARIES, SOURCES, SUFFIX
from culaunch._cache.note import NOTES, Note
from culaunch._cache.place import default_bundles, default_max_bytes, default_path
from culaunch._cache.record import record_use
from culaunch._cache.remote.environment import checked_remote
from culaunch._cache.store import Store
from culaunch._core import remove_library
from culaunch._errors import CacheWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._cache.remote.server import Server

# The maximum wait, in seconds, for another process's build of the same library.
_LONGEST_BUILD = 3600.0


@dataclass(frozen=True)
class Libraries:
    """The libraries of one key, one for each known state of the headers."""

    store: Store
    """The user's cache, or the directory that the caller named."""
    folders: tuple[str, ...]
    """Where the entries are in it."""
    name: str
    key: str
    reads_of: Callable[[Any], Reads]
    """Makes them from the result of ``as_json``; ValueError or TypeError for other values."""
    bundles: tuple[str, ...] = ()
    """Directories that are looked in when the store has none, and never written to."""
    server: Server | None = None
    """The remote cache. It supplies and receives only signed libraries."""
    is_part: bool = False
    """Whether these are parts of other libraries in this store, which warn if it is unusable."""

    @classmethod
    def at(
        cls,
        build_directory: str | os.PathLike[str] | None,
        name: str,
        key: str,
        reads_of: Callable[[Any], Reads],
        *,
        is_part: bool = False,
    ) -> Libraries:
        """Return the libraries in a directory, by default in this user's cache."""
        # The name is for people who look into the directory. The key, cut to 128 bits,
        # distinguishes builds. Together they stay below the 255 bytes that file systems take.
        folder = f"{name[:64]}-{key[:32]}"
        if build_directory is None:
            store = Store(os.path.abspath(default_path()), default_max_bytes())
            remote = checked_remote(None)
            server = None if remote is None else remote._server  # noqa: SLF001
            bundles = tuple(map(os.path.abspath, default_bundles()))
            return cls(store, (INLINE, folder), name, key, reads_of, bundles, server, is_part)
        # A directory named by the caller belongs to the caller, so nothing there is evicted.
        store = Store(os.path.abspath(os.fsdecode(build_directory)), None)
        return cls(store, (folder,), name, key, reads_of, is_part=is_part)

    @property
    def directory(self) -> str:
        """The directory of the entries."""
        return os.path.join(self.store.path, *self.folders)

    def find(self) -> Library | None:
        """Return a library that was built from the present headers."""
        found = None
        with contextlib.suppress(OSError), self.store.open(*self.folders, make=False) as directory:
            found = self._find(directory, is_own=True)
        for path in self.bundles:
            if found is None:
                with contextlib.suppress(OSError), _opened(path, self.folders) as directory:
                    found = self._find(directory, is_own=False)
        if found is not None:
            self._record(found)
        return found

    def build(self, builder: Callable[[str], tuple[str, Reads]]) -> Library:
        """Build a library, while other processes with the same key wait for it.

        The build uses a temporary directory, so nobody can add files between the compiler's. Then
        the result is moved here. If it does not fit, it can be loaded from the temporary directory.
        """
        scratch = Scratch()
        place = os.path.realpath(scratch.path)
        built = None
        try:
            with self._locked():
                # The previous holder of the lock may have built it.
                if (found := self.find()) is not None:
                    return found
                fetched = self._fetch(place)
                path, reads = fetched or builder(place)
                built = Library(path, reads, scratch)
                if not reads.is_current():
                    # A header changed meanwhile, or the list of read files is unknown.
                    return built
                if fetched is None:
                    self._send(built)
                try:
                    kept = self._publish(built)
                except OSError as error:
                    # Others may write there, the disk is full, or a quota is exceeded.
                    if not self.is_part:
                        self._warn(error)
                    return built
                # The result is cached. The temporary directory is removed in `finally`.
                built = None
                self._record(kept)
                return kept
        finally:
            if built is None:
                scratch.remove()
            else:
                scratch.remove_at_exit()  # the caller loads the library at once

    def _locked(self) -> contextlib.AbstractContextManager[object]:
        try:
            self.store.open().close()
        except OSError:
            # Nothing will be found there, and anyone with write access could hold a lock forever.
            return contextlib.nullcontext()
        return self.store.lock(self.key, _LONGEST_BUILD)

    def _fetch(self, place: str) -> tuple[str, Reads] | None:
        """Fetch the library to a directory from the remote cache, if it matches the headers."""
        if self.server is None or not self.server.has_keys:
            return None
        # Imported only if there is a server, because most programs do not use one.
        from culaunch._cache.remote.shared_libraries import digits_of, fetch_library

        found = fetch_library(self.server, digits_of(self.folders[-1]))
        if found is None:
            return None
        try:
            reads = self.reads_of(found.note.reads)
        except (ValueError, TypeError):
            return None
        if not reads.is_current() or found.stem != self._stem(reads):
            return None
        path = os.path.join(place, self.name + SUFFIX)
        try:
            with open(path, "wb") as file:
                file.write(found.content)
        except OSError:  # no room, which the build will also report if it has none
            return None
        return path, reads

    def _send(self, built: Library) -> None:
        """Write the library to the remote cache in the background, if it can be signed."""
        if self.server is None or not self.server.signs:
            return
        from culaunch._cache.remote.shared_libraries import SUFFIX as SHARED
        from culaunch._cache.remote.shared_libraries import SharedLibrary, digits_of

        library, note = _noted(built)
        folder = self.folders[-1]
        shared = SharedLibrary(folder, self._stem(built.reads), library, note)
        self.server.send_signed(digits_of(folder) + SHARED, shared.packed())

    def _record(self, found: Library) -> None:
        """Record the use for the bundle of a program, if recording is on."""
        if self.folders[0] == INLINE:
            record_use("/".join([*self.folders, self._stem(found.reads)]))

    def _stem(self, reads: Reads) -> str:
        return f"{self.name[:64]}-{reads.state[:16]}"

    def _publish(self, built: Library) -> Library:
        stem = self._stem(built.reads)
        library, note = _noted(built)
        try:
            with self.store.open(*self.folders) as directory:
                size = self._publish_sources(directory, os.path.dirname(built.path))
                size += LIBRARIES.publish(directory, stem, library, note)
                path = directory.lasting_path(stem + SUFFIX)
        except OSError:
            with contextlib.suppress(OSError), self.store.open(*self.folders[:-1]) as above:
                remove_library(above.path, self.folders[-1], ())
            raise
        self.store.count("/".join([*self.folders, stem + SUFFIX]), size)
        return Library(path, built.reads)

    def _publish_sources(self, directory: TrustedDirectory, place: str) -> int:
        """Keep the sources, for messages and debuggers; return their bytes.

        All libraries of a key have the same. They are there before the library is, which names
        them.
        """
        size = 0
        for suffix in SOURCES:
            source = os.path.join(place, self.name + suffix)
            if os.path.exists(source):
                content = _content(source)
                directory.publish(self.name + suffix, content)
                size += len(content)
        return size

    def _find(self, directory: TrustedDirectory, *, is_own: bool) -> Library | None:
        # Each known state of the headers has its library, so going back to older headers does not
        # rebuild.
        for name, _ in sorted(directory.files()):
            if name.endswith(NOTES.suffix):
                found = self._read(directory, name.removesuffix(NOTES.suffix), is_own=is_own)
                if found is not None and found.reads.is_current():
                    return found
        return None

    def _read(self, directory: TrustedDirectory, stem: str, *, is_own: bool) -> Library | None:
        # A library that differs from the written one is built again, not loaded.
        note = LIBRARIES.read(directory, stem, is_use=is_own)
        if note is None:
            return None
        try:
            reads = self.reads_of(note.reads)
        except (ValueError, TypeError):
            return None
        return Library(directory.lasting_path(stem + SUFFIX), reads)

    def _warn(self, error: OSError) -> None:
        why = error.strerror or str(error)
        if isinstance(error.filename, str):
            why = f"{error.filename}: {why}"
        warnings.warn(
            f"the compiled library cannot be cached in {self.directory} ({why}). The next process "
            "compiles it again; CULAUNCH_CACHE_DIR or build_directory= selects another directory",
            CacheWarning,
            stacklevel=4,
        )


@dataclass(frozen=True)
class Library:
    """A library, and the digest of its inputs."""

    path: str
    reads: Reads
    scratch: Scratch | None = None
    """The directory that it was built in, if it could not be kept."""

    def loaded(self) -> None:
        """Clean up after a library was loaded from a temporary directory."""
        if self.scratch is not None:
            self.scratch.remove()


class Reads(Protocol):
    """The files that a build read, as the room that follows headers represents them."""

    @property
    def state(self) -> str:
        """A name for the contents that were read, unique among the states of these headers."""

    def is_current(self) -> bool:
        """Tell whether a compiler would still read the same contents."""

    def as_json(self) -> Any:
        """Return it as JSON."""


def _opened(path: str, folders: tuple[str, ...]) -> TrustedDirectory:
    directory = TrustedDirectory.open(path)
    for folder in folders:
        with directory as above:
            directory = above.sub(folder)
    return directory


def _noted(built: Library) -> tuple[bytes, Note]:
    library = _content(built.path)
    return library, Note(hashlib.sha256(library).hexdigest(), built.reads.as_json())


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
