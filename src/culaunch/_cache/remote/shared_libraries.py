"""Libraries of ``load_inline`` on a remote cache.

Libraries are code that this process runs. Therefore a library is used only if a key that is trusted
here has signed it, and written only if there is a key to sign it. A digest is not enough. There is
one file, ``<64 digits>.library``, for each directory of libraries and each platform. It contains
the library that was written last, with its note. A reader must find the same headers as in the
note. Otherwise it builds its own library.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._cache.entry import BadEntryError, meaningless, pack_entry, unpack_entry
from culaunch._cache.note import Note

if TYPE_CHECKING:
    from culaunch._cache.remote.server import Server

SUFFIX = ".library"
_FOLDER = re.compile(r"[A-Za-z0-9_]{1,64}-[0-9a-f]{32}")
_STEM = re.compile(r"[A-Za-z0-9_]{1,64}-[0-9a-f]{16}")


@dataclass(frozen=True)
class SharedLibrary:
    """A library, and its place in a cache."""

    folder: str
    """The directory of its key."""
    stem: str
    content: bytes
    note: Note

    def packed(self) -> bytes:
        """Return the bytes of its file."""
        metadata = {
            "platform": platform(),
            "folder": self.folder,
            "stem": self.stem,
            "result": self.note.result,
            "reads": self.note.reads,
        }
        return pack_entry(_key(digits_of(self.folder)), metadata, self.content)

    @classmethod
    def unpack(cls, digits: str, entry: bytes) -> SharedLibrary | None:
        """Return the library of a file; None if it is for another platform.

        Raise BadEntryError if it is not as written under this name.
        """
        metadata, content = unpack_entry(_key(digits), entry)
        try:
            if metadata["platform"] != platform():
                return None
            folder, stem = metadata["folder"], metadata["stem"]
            # They become parts of a path.
            if _FOLDER.fullmatch(folder) is None or _STEM.fullmatch(stem) is None:
                raise ValueError("it does not belong to a library")
            note = Note(metadata["result"], metadata["reads"])
        except (TypeError, KeyError, ValueError) as error:
            raise meaningless(error) from error
        if digits_of(folder) != digits or hashlib.sha256(content).hexdigest() != note.result:
            raise BadEntryError("does not match its name and its note")
        return cls(folder, stem, content, note)


def fetch_library(server: Server, digits: str) -> SharedLibrary | None:
    """Fetch a signed library from a server.

    This never raises, and never returns an unsigned one.
    """
    name = digits + SUFFIX
    entry = server.fetch_signed(name)
    if entry is None:
        return None
    try:
        return SharedLibrary.unpack(digits, entry)
    except BadEntryError as error:
        server.warn(f"the entry {name} {error}; compiling again")
        return None


def digits_of(folder: str) -> str:
    """Return the server's name for a directory of libraries, for this platform."""
    return hashlib.sha256(f"1\n{folder}\n{platform()}".encode()).hexdigest()


def platform() -> str:
    """Return the platform that a library was built for.

    The library may need functions that an older C library lacks.
    """
    try:
        library = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):  # not glibc
        library = ""
    return f"{sys.platform} {os.uname().machine} {library}"


def _key(digits: str) -> str:
    # Sign more than the digits: a signed image must not pass as a library.
    return f"library {digits}"
