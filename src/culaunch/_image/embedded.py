"""Images that culaunch embedded in host objects and libraries, in a section of their own.

``.culaunch_images`` is read-only data: a sequence of images, each behind a record. All are at
multiples of 64 bytes, with zeros between them. Linkers concatenate the sections of several objects.
A library therefore has all its images in one section. Little-endian::

    16 bytes  "culaunch image", then zeros
    u64       s, the image's size
    u32       r, the record's size, a multiple of 64
    u32       n, the length of the name
    n bytes   the name in CULAUNCH_EMBED_CUBIN, ASCII; zeros up to r
    s bytes   the image, with what metadata it has
    zeros     at least one
    u64       s again, at a multiple of 8: what the C++ code reads
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._image.reader import Reader

SECTION = ".culaunch_images"
ALIGN = 64
_MAGIC = b"culaunch image\0\0"
_RECORD = struct.Struct("<16sQII")


def image_record(name: str, size: int) -> bytes:
    """Return the record that stands before an image."""
    text = name.encode("ascii")
    length = -(-(_RECORD.size + len(text)) // ALIGN) * ALIGN
    return (_RECORD.pack(_MAGIC, size, length, len(text)) + text).ljust(length, b"\0")


def size_offset(size: int) -> int:
    """Return where, counted from the image, its size follows: the last thing before the next."""
    return (size + 1 + 7) // 8 * 8


def embedded_images(section: Reader) -> Iterator[tuple[str, Reader]]:
    """Yield the name and the bytes of every image in a section."""
    at = 0
    while at < len(section):
        start = bytes(section.view[at : at + len(_MAGIC)])
        if start != _MAGIC:
            # Linkers pad between the objects' parts with zeros: anything else was not part of ours.
            if start.strip(b"\0"):
                raise section.error(
                    f"is corrupt: section {SECTION} has other data in place of an image's record",
                    at,
                )
            at += ALIGN
            continue
        _, size, length, count = _record(section, at)
        name = bytes(section.view[at + _RECORD.size : at + _RECORD.size + count])
        yield name.decode("ascii", "replace"), section.window(at + length, size, "an image")
        at += -(-(length + size_offset(size) + 8) // ALIGN) * ALIGN


def _record(section: Reader, at: int) -> tuple[int, ...]:
    found = section.unpack(_RECORD, at, "an image's record")
    length, count = found[2], found[3]
    if length % ALIGN or _RECORD.size + count > length or length > len(section) - at:
        raise section.error(f"is corrupt: a record in section {SECTION} is malformed", at)
    return found
