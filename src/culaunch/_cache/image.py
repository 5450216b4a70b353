"""The kind of entry that is a compiled image: ``<key>.entry``, if a key is 64 digits."""

from __future__ import annotations

from typing import Any

from culaunch._cache.entry import meaningless, pack_entry, unpack_entry
from culaunch._cache.kind import FileKind
from culaunch._image import Image


def pack_image(key: str, image: Image) -> bytes:
    """Return the bytes of an image's entry.

    The metadata contain everything except the image's data.
    """
    metadata = {
        "names": dict(image.names),
        "signatures": {name: list(types) for name, types in image.signatures.items()},
        "log": image.log,
    }
    return pack_entry(key, metadata, image.data)


def unpack_image(key: str, entry: bytes) -> Image:
    """Return the image of an entry; BadEntryError if it is damaged."""
    metadata, data = unpack_entry(key, entry)
    try:
        return _image(metadata, data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise meaningless(error) from error


def _image(metadata: dict[str, Any], data: bytes) -> Image:
    # The digest shows that culaunch wrote it, but not which version, so check every type.
    names, signatures, log = metadata["names"], metadata["signatures"], metadata["log"]
    texts = [*names, *names.values(), *signatures, log]
    for types in signatures.values():
        if not isinstance(types, list):
            raise TypeError("a signature is not a list")
        texts += [one for one in types if one is not None]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a name, a type or the log is not a str")
    signatures = {name: tuple(types) for name, types in signatures.items()}
    return Image(data, names=names, signatures=signatures, log=log)


IMAGES = FileKind(".entry", pack_image, unpack_image)
