"""Payloads of fatbin entries: LZ4 blocks and zstd frames, opened to a size stated before."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from culaunch._base.optional import optional

if TYPE_CHECKING:
    from culaunch._image.reader import Reader

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_OFFSET = struct.Struct("<H")


def lz4_block(payload: Reader, size: int) -> bytes:
    """Decompress an LZ4 block.

    Parameters
    ----------
    payload : Reader
        The block.
    size : int
        The bytes that it decompresses to; never more are made.

    Raises
    ------
    ImageError
        If the block is corrupt or decompresses to another size.
    """
    try:
        import lz4.block as library  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return _lz4_block(payload, size)
    try:
        data: bytes = library.decompress(payload.view, uncompressed_size=size)
    except library.LZ4BlockError:
        # The library does not say where; this does.
        return _lz4_block(payload, size)
    return _checked(data, size, payload)


def zstd_frame(payload: Reader, size: int) -> bytes:
    """Decompress a zstd frame.

    Parameters
    ----------
    payload : Reader
        The frame.
    size : int
        The bytes that it decompresses to; never more are made.

    Raises
    ------
    ImageError
        If the frame is corrupt or decompresses to another size.
    MissingDependencyError
        If Python is older than 3.14 and the package ``zstandard`` is not installed.
    """
    stated = _zstd_content_size(payload)
    # The library trusts the stated size of the frame, and allocates it.
    if stated != size:
        raise payload.error(
            f"is corrupt: the entry claims {size} bytes, but its zstd frame {stated}", 4
        )
    library = _zstd_library(payload)
    try:
        if library.__name__ == "zstandard":
            data = library.ZstdDecompressor().decompress(payload.view, max_output_size=size)
        else:
            data = library.ZstdDecompressor().decompress(payload.view, max_length=size)
    except library.ZstdError as error:
        raise payload.error(f"is corrupt: zstd reports {error}") from None
    return _checked(data, size, payload)


def _zstd_library(payload: Reader) -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        return zstd
    except ImportError:
        pass
    purpose = (
        f"{payload.source}: is compressed with zstd, which Python includes since 3.14; reading it"
    )
    return optional("zstandard", purpose, "'culaunch[inspect]'")


def _zstd_content_size(payload: Reader) -> int | None:
    """Read the size that a frame's header states (RFC 8878, 3.1.1.1)."""
    head = bytes(payload.view[:18])
    if head[:4] != _ZSTD_MAGIC or len(head) < 6:
        raise payload.error(f"is corrupt: a zstd frame cannot start with {head[:4].hex(' ')}")
    single, flag = head[4] >> 5 & 1, head[4] >> 6
    start = 5 + (not single) + (0, 1, 2, 4)[head[4] & 3]
    width = (single, 2, 4, 8)[flag]
    if not width:
        return None
    value = int.from_bytes(head[start : start + width], "little")
    return value + 256 if width == 2 else value


def _lz4_block(payload: Reader, size: int) -> bytes:
    view, end = payload.view, len(payload)
    out = bytearray()
    position = 0
    try:
        while position < end:
            token = view[position]
            position += 1
            literals = token >> 4
            if literals == 15:
                literals, position = _lz4_length(view, position, literals)
            if position + literals > end or len(out) + literals > size:
                raise payload.error("is corrupt: LZ4 literals extend past the end", position)
            out += view[position : position + literals]
            position += literals
            # A block ends with literals: no match follows.
            if position == end:
                break
            offset = _OFFSET.unpack_from(view, position)[0]
            position += 2
            match = token & 15
            if match == 15:
                match, position = _lz4_length(view, position, match)
            # A shorter match would be longer than the bytes that it replaces.
            match += 4
            if not 0 < offset <= len(out) or len(out) + match > size:
                raise payload.error("is corrupt: an LZ4 match is out of range", position)
            start = len(out) - offset
            if offset >= match:
                out += out[start : start + match]
            else:
                # A match that overlaps its own output repeats the last `offset` bytes.
                pattern = out[start:]
                out += (pattern * (match // offset + 1))[:match]
    except (IndexError, struct.error):
        raise payload.error("is truncated: an LZ4 block does not end", end) from None
    return _checked(bytes(out), size, payload)


def _lz4_length(view: memoryview, position: int, length: int) -> tuple[int, int]:
    while True:
        more = view[position]
        position += 1
        length += more
        if more != 255:
            return length, position


def _checked(data: bytes, size: int, payload: Reader) -> bytes:
    if len(data) != size:
        raise payload.error(f"is corrupt: it decompresses to {len(data)} bytes instead of {size}")
    return data
