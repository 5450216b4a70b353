"""The kind of entry that only saves work: a result that holds while the disk reads the same.

``<key>.note`` has the digest of a source's headers; ``<stem>.note`` beside a library of
``load_inline`` identifies the library and its inputs. A note that is lost or damaged costs the work
that it saved, and nothing else: nobody is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from culaunch._cache.entry import meaningless, pack_entry, unpack_entry
from culaunch._cache.kind import FileKind


@dataclass(frozen=True)
class Note:
    """A result, and the files that were read for it."""

    result: str
    """The digest of the result."""
    reads: Any
    """A JSON value; the room that follows headers defines its meaning."""


def pack_note(key: str, note: Note) -> bytes:
    """Return the bytes of a note's entry."""
    return pack_entry(key, {"result": note.result, "reads": note.reads})


def unpack_note(key: str, entry: bytes) -> Note:
    """Return the note of an entry; BadEntryError if it is damaged."""
    metadata, _ = unpack_entry(key, entry)
    try:
        result, reads = metadata["result"], metadata["reads"]
    except (TypeError, KeyError) as error:
        raise meaningless(error) from error
    if not isinstance(result, str):
        raise meaningless(TypeError("the result is not a str"))
    return Note(result, reads)


NOTES = FileKind(".note", pack_note, unpack_note)
