"""Where image bytes come from: paths, mapped files, messages."""

from __future__ import annotations

import mmap
import os
import stat

from culaunch._base.values import counted
from culaunch._errors import ImageError

# Below this a plain read is cheaper than a mapping.
_MAP_FROM = 1 << 20


def open_bytes(path: str) -> bytes | mmap.mmap:
    """Return a file's bytes. A large file is mapped, to read only the parts that are parsed.

    The mapping is closed when nothing refers to it any more. Closing it earlier would fail:
    the traceback of an error holds windows on it.
    """
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < _MAP_FROM:
            return file.read()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def check_path(source: object) -> str:
    """Return the path as text, once it is known to be a regular file that is not empty."""
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"source must be a path, bytes or an Image (got {type(source).__name__})")
    path = os.fsdecode(source)
    try:
        # PTX given as str by mistake is long, has line ends, and may have letters that no path can
        # have.
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ImageError(
            f"a str must be a path, and a file cannot have the name {path!r}"
        ) from None
    if "__global__" in path:
        raise ImageError(
            "source must be an image (got CUDA source): compile it first (culaunch.compile)"
        )
    if "\n" in path or "\0" in path:
        raise ImageError(
            "a str must be a path (got PTX text): give the text as bytes, text.encode()"
        )
    mode = os.stat(path)
    if stat.S_ISDIR(mode.st_mode):
        raise ImageError("is a directory, not an image file", source=path)
    if not stat.S_ISREG(mode.st_mode):
        raise ImageError("is not a regular file: read it and give the bytes", source=path)
    return path


def describe(data: bytes | mmap.mmap | memoryview, path: str | None) -> str:
    """Name a source in messages: its path, or its size when it came as bytes."""
    return path or f"<{counted(len(data), 'byte')}>"
