"""The bytes of one cache entry.

Little-endian::

    0   8 bytes   "culcache"
    8   u32       format version, 1
    12  u32       n, length of the metadata
    16  u64       m, length of the image
    24  32 bytes  SHA-256 of: bytes 0 to 24, the key (64 hexadecimal digits), bytes 56 to the end
    56  n bytes   JSON: {"names": ..., "signatures": ..., "log": ...}
    56+n m bytes  the image

The key is in the digest, so that an entry under another name is detected too. A reader MUST refuse
a file whose length is not 56 + n + m.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

from culaunch._image import Image

FORMAT_VERSION = 1
_MAGIC = b"culcache"
_HEAD = struct.Struct("<8sIIQ")
_BODY = _HEAD.size + hashlib.sha256().digest_size


class BadEntryError(Exception):
    """An entry that is not what was written."""


def pack_entry(key: str, image: Image) -> bytes:
    """Return the bytes of an entry."""
    metadata = json.dumps(
        {
            "names": dict(image.names),
            "signatures": {name: list(types) for name, types in image.signatures.items()},
            "log": image.log,
        },
        separators=(",", ":"),
    ).encode()
    head = _HEAD.pack(_MAGIC, FORMAT_VERSION, len(metadata), len(image.data))
    body = metadata + image.data
    return head + _digest(key, head, body) + body


def unpack_entry(key: str, entry: bytes) -> Image:
    """Return the image of an entry, after checking all of it."""
    if len(entry) < _BODY:
        raise BadEntryError(f"is truncated to {len(entry)} bytes")
    magic, version, metadata_size, data_size = _HEAD.unpack_from(entry)
    if magic != _MAGIC or version != FORMAT_VERSION:
        raise BadEntryError("is not a cache entry of this version")
    if len(entry) != _BODY + metadata_size + data_size:
        raise BadEntryError(f"has {len(entry)} bytes, not {_BODY + metadata_size + data_size}")
    view = memoryview(entry)
    if _digest(key, view[: _HEAD.size], view[_BODY:]) != view[_HEAD.size : _BODY]:
        raise BadEntryError("does not match its SHA-256")
    try:
        return _image(
            json.loads(entry[_BODY : _BODY + metadata_size]), entry[_BODY + metadata_size :]
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        # The digest is right: whoever wrote it had another idea of what an entry is.
        raise BadEntryError(f"has metadata that mean nothing ({error})") from error


def _image(metadata: dict[str, Any], data: bytes) -> Image:
    names, signatures, log = metadata["names"], metadata["signatures"], metadata["log"]
    texts = [*names, *names.values(), *signatures, log]
    for types in signatures.values():
        if not isinstance(types, list):
            raise TypeError("a signature is no list")
        texts += [one for one in types if one is not None]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a name, a type or the log is no text")
    signatures = {name: tuple(types) for name, types in signatures.items()}
    return Image(data, names=names, signatures=signatures, log=log)


def _digest(key: str, head: bytes | memoryview, body: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(head)
    digest.update(key.encode())
    digest.update(body)
    return digest.digest()
