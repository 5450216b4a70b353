"""Finds the temporary files and directories of living processes.

The creator locks its file, and the end of the process releases the lock in any case. An unlocked
file was left by a process that was killed. If a file system has no locks, every process counts as
alive.
"""

from __future__ import annotations

import contextlib
import os

try:
    import fcntl
except ImportError:  # not Unix
    fcntl = None  # type: ignore[assignment]


def claim(path: str, descriptor: int) -> bool:
    """Lock a new file; return False if another process took it for the file of a dead process.

    Parameters
    ----------
    path : str
        The file's path.
    descriptor : int
        The open file; the lock lasts until it is closed.
    """
    try:
        return not _lock(descriptor) or _leads_to(path, descriptor)
    except BlockingIOError:
        return False


def take_dead(path: str, flags: int = os.O_RDONLY) -> int | None:
    """Return a descriptor that locks the file of a dead process, or None if the process lives.

    The holder may remove the file, and must then close the descriptor.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with contextlib.suppress(OSError):
            is_mine = os.fstat(descriptor).st_uid == os.geteuid()
            # Another may have removed it, and a third made a new one, since it was opened.
            if is_mine and _lock(descriptor) and _leads_to(path, descriptor):
                return descriptor
        os.close(descriptor)
    return None


def _lock(descriptor: int) -> bool:
    """Lock a file or directory; return False if nothing can be, BlockingIOError if it is."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            return False
    return fcntl is not None


def _leads_to(path: str, descriptor: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    return False
