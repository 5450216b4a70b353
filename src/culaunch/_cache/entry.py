"""The byte format of one entry of any kind.

Little-endian::

    0   8 bytes   "culcache"
    8   u32       format version, 1
    12  u32       n, length of the metadata
    16  u64       m, length of the data
    24  32 bytes  SHA-256 of: bytes 0 to 24, the key, bytes 56 to the end
    56  n bytes   the metadata, JSON: each kind has its own
    56+n m bytes  the data

The digest includes the key, which detects an entry under another name. A reader MUST refuse a file
whose length is not 56 + n + m.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from typing import Any

FORMAT_VERSION = 1
# A key is a SHA-256 in hexadecimal digits, so as a part of a path it cannot leave the directory.
KEY = re.compile(r"[0-9a-f]{64}")
_MAGIC = b"culcache"
_HEAD = struct.Struct("<8sIIQ")
_BODY = _HEAD.size + hashlib.sha256().digest_size


class BadEntryError(Exception):
    """The contents of an entry differ from the written ones."""


def pack_entry(key: str, metadata: Any, data: bytes = b"") -> bytes:
    """Return the bytes of an entry.

    Parameters
    ----------
    key : str
        The key that finds it.
    metadata
        A JSON value.
    data : bytes, optional
        The stored bytes.
    """
    text = json.dumps(metadata, separators=(",", ":")).encode()
    # The digest covers the lengths, too, so it detects a truncated file with an adjusted length.
    head = _HEAD.pack(_MAGIC, FORMAT_VERSION, len(text), len(data))
    body = text + data
    return head + _digest(key, head, body) + body


def unpack_entry(key: str, entry: bytes) -> tuple[Any, bytes]:
    """Return the metadata and the data of an entry, after checking all of it.

    Raise BadEntryError if it is not as written for this key.
    """
    # Check the lengths before the digest: a short file has no digest. Check the digest before the
    # metadata: no parser gets bytes from a broken disk or an attacker.
    if len(entry) < _BODY:
        raise BadEntryError(f"is truncated to {len(entry)} bytes")
    magic, version, metadata_size, data_size = _HEAD.unpack_from(entry)
    if magic != _MAGIC or version != FORMAT_VERSION:
        raise BadEntryError("is not a cache entry of this version")
    if len(entry) != _BODY + metadata_size + data_size:
        wanted = _BODY + metadata_size + data_size
        raise BadEntryError(f"has a wrong length ({len(entry)} bytes, not {wanted})")
    view = memoryview(entry)
    if _digest(key, view[: _HEAD.size], view[_BODY:]) != view[_HEAD.size : _BODY]:
        raise BadEntryError("does not match its SHA-256")
    try:
        metadata = json.loads(entry[_BODY : _BODY + metadata_size])
    except (ValueError, RecursionError) as error:
        # The digest is right, so the writer had another definition of an entry.
        raise meaningless(error) from error
    return metadata, entry[_BODY + metadata_size :]


def meaningless(error: Exception) -> BadEntryError:
    """Return the error for an entry with a valid digest but invalid metadata."""
    return BadEntryError(f"has invalid metadata ({error})")


def _digest(key: str, head: bytes | memoryview, body: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(head)
    digest.update(key.encode())
    digest.update(body)
    return digest.digest()
