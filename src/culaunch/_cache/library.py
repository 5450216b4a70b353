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
from culaunch._cache.kind import touch_file
from culaunch._cache.note import NOTES, Note
from culaunch._core import remove_library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._base.trusted import TrustedDirectory

INLINE = "inline"
SUFFIX = ".so"
SOURCES = (".cpp", ".cu")


class LibraryKind:
    """Entries of a library and its note, in a directory shared by their key."""

    def read(self, folder: TrustedDirectory, stem: str, *, is_use: bool = True) -> Note | None:
        """Return the note of a library if both are intact, and record the use."""
        # The file is read and checked as a whole, then loaded by its path. It cannot change in
        # between, because only the user can write to it, and publishing replaces the file.
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

        Raise OSError if one could not be written. Then both are missing.
        """
        packed = NOTES.pack(note_key(folder, stem), note)
        # The note comes last: a library without a note is ignored, so nobody loads an incomplete
        # one.
        folder.publish(stem + SUFFIX, library)
        try:
            folder.publish(NOTES.name(stem), packed)
        except OSError:
            # Without its note it is never used, and wastes space.
            folder.remove(stem + SUFFIX)
            raise
        return len(library) + len(packed)

    def check(
        self, directory: TrustedDirectory, name: str, files: Sequence[str], *, drop: bool
    ) -> bool:
        """Tell whether a library matches its note; a library without a note is never used."""
        with contextlib.suppress(OSError), directory.sub(INLINE) as inline:
            with inline.sub(name) as folder:
                # This is not a use: checking the whole cache must not make every entry recently
                # used.
                stem = files[0].removesuffix(SUFFIX)
                is_intact = self.read(folder, stem, is_use=False) is not None
            if drop and not is_intact:
                remove_library(inline.path, name, files)
            return is_intact
        return False


LIBRARIES = LibraryKind()


def note_key(folder: TrustedDirectory, stem: str) -> str:
    """Return a library's path in the cache, for packing its note."""
    return f"{os.path.basename(folder.path)}/{stem}"
