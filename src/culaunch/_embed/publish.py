"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

_COUNTER = itertools.count()


@contextlib.contextmanager
def published(path: str) -> Iterator[BinaryIO]:
    """Open a new file that takes the name `path` when the block ends well.

    Until then, and after an exception, what had that name stays as it was. The file is not
    flushed to the disk: like a compiler's output it can be made again, and a build system would
    pay for it every time.
    """
    directory = os.path.dirname(path) or "."
    if not os.path.isdir(directory):
        raise FileNotFoundError(
            errno.ENOENT, "the directory of the output does not exist; make it first", directory
        )
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "the output is a directory; name a file", path)
    # Not tempfile: its files are private, and the umask can only be asked by changing it.
    temporary = os.path.join(directory, f".culaunch-{os.getpid()}-{next(_COUNTER)}.tmp")
    handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        with open(handle, "w+b") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
