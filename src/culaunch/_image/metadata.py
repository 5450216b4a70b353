"""Facts from the compilation that the image's bytes do not contain, kept in the same file.

They follow the image: the driver takes an image's size from its header, and never reads past it.
Each format stores them in a way that cuobjdump and nvdisasm accept. Little-endian. A block lies at
the very end of the file::

    JSON      n bytes, UTF-8: {"names": {expression: lowered},
                               "signatures": {kernel: [type or null, ...]}}, then spaces
    u32       n
    u32       CRC-32 of the JSON
    8 bytes   "culaunch"

- cubin: the block follows the ELF file.
- fatbin: the block is split into pieces of at most 65512 bytes. Each piece is the tail of the
  header of one more container without entries (u32 0xBA55ED50, u16 1, u16 16 + piece, u64 0).
- PTX: no block; ``// culaunch: `` and the JSON are the last line, a comment.

A reader MUST ignore members that it does not know. A file without a block has no metadata. A
damaged block is an error, and nothing is guessed.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import TYPE_CHECKING

from culaunch._errors import ImageError

if TYPE_CHECKING:
    import mmap
    from collections.abc import Mapping

_MAGIC = b"culaunch"
_TAIL = struct.Struct("<II8s")
_CONTAINER = struct.Struct("<IHHQ")
_FATBIN_MAGIC = 0xBA55ED50
_PIECE = 65512
_PTX_MARK = b"\n// culaunch: "

Names = dict[str, str]
Signatures = dict[str, tuple[str | None, ...]]


def append_metadata(
    data: bytes,
    image_format: str,
    names: Mapping[str, str],
    signatures: Mapping[str, tuple[str | None, ...]],
) -> bytes:
    """Return a file's bytes with the metadata added; the same bytes if there are none."""
    if not names and not signatures:
        return data
    text = json.dumps(
        {"names": dict(names), "signatures": {k: list(v) for k, v in signatures.items()}},
        # Equal images get equal bytes, regardless of the order of the requested names.
        sort_keys=True,
        separators=(",", ":"),
    ).encode()
    if image_format == "ptx":
        return data + _PTX_MARK + text + b"\n"
    # cuobjdump wants every container of a fatbin at a multiple of 8 bytes.
    text += b" " * (-len(text) % 8)
    block = text + _TAIL.pack(len(text), zlib.crc32(text), _MAGIC)
    if image_format == "fatbin":
        pieces = [block[at : at + _PIECE] for at in range(0, len(block), _PIECE)]
        block = b"".join(_header(len(piece)) + piece for piece in pieces)
    return data + block


def may_have_metadata(data: bytes | mmap.mmap) -> bool:
    """Tell from its end whether a file may have metadata."""
    return data[-len(_MAGIC) :] == _MAGIC or data[-2:] == b"}\n"


def split_metadata(data: bytes, source: str) -> tuple[bytes, Names, Signatures]:
    """Split a file's bytes into the image, its names and its signatures."""
    # Only bytes at the very end are culaunch's. The same letters elsewhere in an image mean
    # nothing.
    if data.endswith(_MAGIC) and len(data) > _TAIL.size:
        size, checksum, _ = _TAIL.unpack_from(data, len(data) - _TAIL.size)
        fatbin = data.startswith(_FATBIN_MAGIC.to_bytes(4, "little"))
        block, start = _last_block(data, size + _TAIL.size, fatbin)
        text = block[:size]
        if start <= 0 or zlib.crc32(text) != checksum:
            raise ImageError("its metadata is damaged", source=source)
        return (data[:start], *_read(text, source, start))
    if data[-2:] == b"}\n":
        start = data.rfind(b"\n", 0, -1)
        if start > 0 and data.startswith(_PTX_MARK, start):
            text = data[start + len(_PTX_MARK) : -1]
            return (data[:start], *_read(text, source, start))
    return data, {}, {}


def _last_block(data: bytes, size: int, fatbin: bool) -> tuple[bytes, int]:
    """Return the block of this size at the end, in one piece, and where in the file it starts."""
    if not fatbin:
        start = len(data) - size
        return data[max(start, 0) :], start
    pieces = [min(_PIECE, size - at) for at in range(0, size, _PIECE)]
    start = at = len(data) - size - len(pieces) * _CONTAINER.size
    block = bytearray()
    # The headers of the pieces are known from the size: anything else there is damage.
    for piece in pieces if start > 0 else ():
        if data[at : at + _CONTAINER.size] != _header(piece):
            return b"", 0
        at += _CONTAINER.size
        block += data[at : at + piece]
        at += piece
    return bytes(block), start


def _header(piece: int) -> bytes:
    return _CONTAINER.pack(_FATBIN_MAGIC, 1, _CONTAINER.size + piece, 0)


def _read(text: bytes, source: str, offset: int) -> tuple[Names, Signatures]:
    try:
        found = json.loads(text)
        names = dict(found.get("names", {}).items())
        signatures = {name: tuple(types) for name, types in found.get("signatures", {}).items()}
    # The checksum says that it is as it was written, but not that we wrote it.
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ImageError("its metadata is damaged", source=source, offset=offset) from error
    texts = [*names, *names.values(), *signatures]
    types = [kind for signature in signatures.values() for kind in signature if kind is not None]
    if not all(isinstance(item, str) for item in [*texts, *types]):
        raise ImageError("its metadata is damaged", source=source, offset=offset)
    return names, signatures
