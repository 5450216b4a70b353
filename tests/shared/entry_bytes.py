"""The bytes of a cache entry, written and split by the description of the format."""

from __future__ import annotations

import hashlib
import json
import struct

HEAD = struct.Struct("<8sIIQ")


def entry_of(key, metadata, data=b""):
    """Return the entry of a key, with any metadata."""
    text = json.dumps(metadata, separators=(",", ":")).encode()
    head = HEAD.pack(b"culcache", 1, len(text), len(data))
    return signed(key, head + bytes(32) + text + data)


def signed(key, entry):
    """Give an entry of a key the digest of its contents, whatever they are."""
    digest = hashlib.sha256(entry[:24] + key.encode() + entry[56:]).digest()
    return entry[:24] + digest + entry[56:]


def split(entry):
    """Return an entry's metadata and its data, both as bytes."""
    _, _, size, _ = HEAD.unpack_from(entry)
    return entry[56 : 56 + size], entry[56 + size :]
