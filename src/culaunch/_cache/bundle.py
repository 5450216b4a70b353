"""The cache entries that a program used, as a directory to ship with it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from culaunch._base.trusted import TrustedDirectory
from culaunch._cache.image import IMAGES
from culaunch._cache.library import INLINE, LIBRARIES, SUFFIX
from culaunch._cache.record import read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from culaunch._cache.note import Note
    from culaunch._image import Image


def write_bundle(
    output: str, record: str, find: Callable[[str], Image | None], places: Sequence[str]
) -> int:
    """Write the entries of a record to a directory; return their number.

    The directory is created if necessary. Everyone may read it, because the users of a program
    rarely built it. Only its owner may write to it. The libraries come from `places`: the cache's
    directory and the bundles.

    Raises
    ------
    ValueError
        If the record is invalid, or an entry no longer exists.
    OSError
        If reading or writing fails, or others may write to the directory.
    """
    keys = read_record(record)
    if not keys:
        raise ValueError(f"{record!r} is empty: the program used no cache")
    images = {key: find(key) for key in keys if "/" not in key}
    libraries = {key: _library(key, places) for key in keys if "/" in key}
    missing = [key for key in keys if images.get(key) is None and libraries.get(key) is None]
    if missing:
        raise ValueError(
            f"entries that the program used are missing from the cache: {len(missing)} of "
            f"{len(keys)} ({missing[0]}, ...); run the program again"
        )
    os.makedirs(output, mode=0o755, exist_ok=True)
    with TrustedDirectory.open(output) as directory:
        for key, image in images.items():
            assert image is not None
            directory.publish(IMAGES.name(key), IMAGES.pack(key, image))
            # Published files are private to their owner, as everywhere in a cache. Others must be
            # able to read this one.
            os.chmod(os.path.join(output, IMAGES.name(key)), 0o644)
        for key, library in libraries.items():
            assert library is not None
            _publish(directory, key, *library)
    return len(keys)


def _library(key: str, places: Sequence[str]) -> tuple[bytes, Note] | None:
    """Return a library and its note from the first place that has both intact."""
    _, folder, stem = key.split("/")
    for place in places:
        with (
            contextlib.suppress(OSError),
            TrustedDirectory.open(place) as directory,
            directory.sub(INLINE) as inline,
            inline.sub(folder) as inside,
        ):
            note = LIBRARIES.read(inside, stem, is_use=False)
            content = inside.read(stem + SUFFIX)
            if note is not None and content is not None:
                return content[0], note
    return None


def _publish(directory: TrustedDirectory, key: str, library: bytes, note: Note) -> None:
    _, folder, stem = key.split("/")
    with directory.sub(INLINE, make=True) as inline, inline.sub(folder, make=True) as inside:
        LIBRARIES.publish(inside, stem, library, note)
        for path in (inline.path, inside.path):
            os.chmod(path, 0o755)  # noqa: S103 - every user of the program reads it
        for name, _ in inside.files():
            os.chmod(os.path.join(inside.path, name), 0o644)
