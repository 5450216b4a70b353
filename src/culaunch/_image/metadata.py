"""What a compile knows that the image's bytes do not say, kept in the same file.

It comes after the image: the driver, cuobjdump and nvdisasm take an ELF file's or a fatbin's size
from its header and never look there. PTX carries it as a last line, which is a comment.

In a cubin or fatbin, little-endian, at the very end of the file::

    JSON      n bytes, UTF-8: {"names": {expression: lowered},
                               "signatures": {kernel: [type or null, ...]}}
    u32       n
    u32       CRC-32 of the JSON
    8 bytes   "culaunch"

In PTX: ``// culaunch: `` and the JSON on one line. A reader MUST ignore members that it does not
know. A file without the trailer has no metadata; a damaged one is an error, never guessed at.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import TYPE_CHECKING

from culaunch._errors import ImageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAGIC = b"culaunch"
_TAIL = struct.Struct("<II8s")
_PTX_MARK = b"\n// culaunch: "
_MAX_BYTES = 1 << 26

Names = dict[str, str]
Signatures = dict[str, tuple[str | None, ...]]


def append_metadata(
    data: bytes,
    image_format: str,
    names: Mapping[str, str],
    signatures: Mapping[str, tuple[str | None, ...]],
) -> bytes:
    """Give the bytes of a file with the metadata; the same bytes when there is none."""
    if not names and not signatures:
        return data
    text = json.dumps(
        {"names": dict(names), "signatures": {k: list(v) for k, v in signatures.items()}},
        sort_keys=True,
        separators=(",", ":"),
    ).encode()
    if image_format == "ptx":
        return data + _PTX_MARK + text + b"\n"
    return data + text + _TAIL.pack(len(text), zlib.crc32(text), _MAGIC)


def split_metadata(data: bytes, source: str) -> tuple[bytes, Names, Signatures]:
    """Take a file's bytes apart: the image, its names and its signatures."""
    if data.endswith(_MAGIC) and len(data) > _TAIL.size:
        size, checksum, _ = _TAIL.unpack_from(data, len(data) - _TAIL.size)
        start = len(data) - _TAIL.size - size
        if start <= 0 or size > _MAX_BYTES:
            raise ImageError("its metadata is longer than the file", source=source)
        text = data[start : -_TAIL.size]
        if zlib.crc32(text) != checksum:
            raise ImageError("its metadata is damaged", source=source, offset=start)
        return (data[:start], *_read(text, source, start))
    if data[-2:] == b"}\n":
        start = data.rfind(b"\n", 0, -1)
        if start > 0 and data.startswith(_PTX_MARK, start):
            text = data[start + len(_PTX_MARK) : -1]
            return (data[:start], *_read(text, source, start))
    return data, {}, {}


def _read(text: bytes, source: str, offset: int) -> tuple[Names, Signatures]:
    try:
        found = json.loads(text)
        names = found.get("names", {})
        signatures = {name: tuple(types) for name, types in found.get("signatures", {}).items()}
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ImageError("its metadata is damaged", source=source, offset=offset) from error
    texts = [*names, *names.values(), *signatures]
    types = [kind for signature in signatures.values() for kind in signature if kind is not None]
    if not all(isinstance(item, str) for item in [*texts, *types]):
        raise ImageError("its metadata is damaged", source=source, offset=offset)
    return names, signatures
