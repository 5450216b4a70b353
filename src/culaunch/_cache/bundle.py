"""What a program used, as a directory to ship with it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from culaunch._base.trusted import TrustedDirectory
from culaunch._cache.image import IMAGES
from culaunch._cache.record import read_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._image import Image


def write_bundle(output: str, record: str, find: Callable[[str], Image | None]) -> int:
    """Write the entries of a record to a directory; return how many there are.

    The directory is made, or added to. Everybody may read it, since whoever runs the program is
    rarely who built it; nobody but its owner may write to it.

    Raises
    ------
    ValueError
        If the record is none, or an entry is not there any more.
    OSError
        If something cannot be read or written, or others may write to the directory.
    """
    keys = read_record(record)
    if not keys:
        raise ValueError(f"{record!r} is empty: the program used no cache")
    images = {key: find(key) for key in keys}
    missing = [key for key, image in images.items() if image is None]
    if missing:
        raise ValueError(
            f"{len(missing)} of {len(keys)} entries that were used are not in the cache any more "
            f"({missing[0]}, ...): run the program again"
        )
    os.makedirs(output, mode=0o755, exist_ok=True)
    with TrustedDirectory.open(output) as directory:
        for key, image in images.items():
            assert image is not None
            directory.publish(IMAGES.name(key), IMAGES.pack(key, image))
            # Published files are their owner's alone, as everywhere in a cache: this one is to be
            # read by others.
            os.chmod(os.path.join(output, IMAGES.name(key)), 0o644)
    return len(keys)
