"""The kind of entry that is a library of ``load_inline``: a file to load, and its note.

::

    inline/<name>-<key>/<stem>.so    the library,
    inline/<name>-<key>/<stem>.note  its digest, and what it was built from
    inline/<name>-<key>/<name>.cpp   its source (or .cu), for messages and debuggers

A directory for each key (sources, images, flags, compiler) holds one library for each state of the
headers that was met.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING

from culaunch._cache.entry import BadEntryError
from culaunch._cache.kind import Stored, touch_file
from culaunch._cache.note import NOTES, Note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._base.trusted import TrustedDirectory

INLINE = "inline"
SUFFIX = ".so"
SOURCES = (".cpp", ".cu")


class LibraryKind:
    """Entries that are a library and its note, in a directory with others of their key."""

    counts = True

    def read(self, folder: TrustedDirectory, stem: str, *, is_use: bool = True) -> Note | None:
        """Return the note of a library if both are what was written; note that it is used."""
        # The file is read and checked as a whole, then loaded by its path. It cannot change in
        # between: only the user can write to it, and publishing replaces it with another file.
        library = folder.read(stem + SUFFIX)
        found = folder.read(NOTES.name(stem))
        if library is None or found is None:
            return None
        try:
            note = NOTES.unpack(note_key(folder, stem), found[0])
        except BadEntryError:
            return None
        if hashlib.sha256(library[0]).hexdigest() != note.result:
            return None
        if is_use:
            touch_file(folder, stem + SUFFIX, library[1])
        return note

    def publish(self, folder: TrustedDirectory, stem: str, library: bytes, note: Note) -> int:
        """Put a library and its note in place; return their bytes.

        Raises
        ------
        OSError
            If one could not be written. Then both are missing.
        """
        packed = NOTES.pack(note_key(folder, stem), note)
        # The note comes last: a library without a note is ignored, so nobody loads an incomplete
        # one.
        folder.publish(stem + SUFFIX, library)
        try:
            folder.publish(NOTES.name(stem), packed)
        except OSError:
            # Without its note it is never used, and takes the room that was missing.
            folder.remove(stem + SUFFIX)
            raise
        return len(library) + len(packed)

    def list_in(self, directory: TrustedDirectory) -> Iterator[Stored]:
        """Find the libraries, with what belongs to each by its name."""
        for folder, inside in library_folders(directory):
            files = dict(inside.files())
            # The sources go with the last library, which is the one that was used last.
            sources = sum(status.st_size for name, status in files.items() if is_source(name))
            names = [name for name in files if name.endswith(SUFFIX)]
            for name in sorted(names, key=lambda name: files[name].st_mtime, reverse=True):
                status = files[name]
                stem = name.removesuffix(SUFFIX)
                # Older versions gave their record this name, too. It is removed with the library.
                beside = [one for one in (NOTES.name(stem), f"{stem}.json") if one in files]
                together = (name, *beside)
                size = sources + sum(files[one].st_size for one in together)
                sources = 0
                yield Stored(self, folder, together, size, status.st_mtime)

    def check(self, directory: TrustedDirectory, stored: Stored, *, drop: bool) -> bool:
        """Tell whether a library is what its note says; one without a note is never used."""
        stem = stored.names[0].removesuffix(SUFFIX)
        try:
            with directory.sub(INLINE) as inline, inline.sub(_own_name(stored)) as folder:
                # To look is not to use: a check of the whole cache must not make all of it look
                # recent.
                is_intact = self.read(folder, stem, is_use=False) is not None
        except OSError:
            is_intact = False
        if drop and not is_intact:
            self.remove(directory, stored)
        return is_intact

    def remove(self, directory: TrustedDirectory, stored: Stored) -> bool:
        """Remove a library, and with the last one of its key the sources and the directory."""
        with contextlib.suppress(OSError), directory.sub(INLINE) as inline:
            with inline.sub(_own_name(stored)) as folder:
                # The note first: a library without one is not found, and does no harm.
                removed = [folder.remove(name) for name in reversed(stored.names)]
            remove_if_bare(inline, _own_name(stored))
            return removed[-1]
        return False


LIBRARIES = LibraryKind()


def note_key(folder: TrustedDirectory, stem: str) -> str:
    """Return what the note of a library is packed for: where it is below the cache."""
    return f"{os.path.basename(folder.path)}/{stem}"


def remove_if_bare(inline: TrustedDirectory, name: str) -> None:
    """Remove the sources in a directory that has no library any more, and then the directory."""
    with contextlib.suppress(OSError):
        with inline.sub(name) as folder:
            left = [file for file, _ in folder.files()]
            if not any(file.endswith((SUFFIX, NOTES.suffix)) for file in left):
                for file in filter(is_source, left):
                    folder.remove(file)
        inline.remove_directory(name)


def is_source(name: str) -> bool:
    """Tell whether a file is what a library was built from."""
    return name.endswith(SOURCES)


def library_folders(directory: TrustedDirectory) -> Iterator[tuple[str, TrustedDirectory]]:
    """Open each directory of libraries; yield its place in the cache, and itself."""
    try:
        inline = directory.sub(INLINE)
    except OSError:
        return
    with inline:
        for name in inline.directories():
            with contextlib.suppress(OSError), inline.sub(name) as folder:
                yield f"{INLINE}/{name}", folder


def _own_name(stored: Stored) -> str:
    return stored.folder.partition("/")[2]
