"""One compilation at a time for each key, among threads and processes of a machine.

A lock is one byte of one file, at an offset computed from the key. It uses the
open-file-description locks of Linux. They end with the process, work between threads, and need no
file for each key. Some network mounts do not support them. Then nothing is locked: two processes
may compile the same key, and both get a correct result.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from typing import TYPE_CHECKING

try:
    import fcntl

    _SET: int | None = fcntl.F_OFD_SETLK
except (ImportError, AttributeError):  # not Linux
    _SET = None

if TYPE_CHECKING:
    from collections.abc import Iterator

# struct flock of 64-bit Linux: l_type, l_whence, l_start, l_len, l_pid.
_FLOCK = struct.Struct("hhqqi4x")


@contextlib.contextmanager
def lock_key(path: str, key: str, timeout: float) -> Iterator[bool]:
    """Hold the lock of a key.

    Parameters
    ----------
    path : str
        The lock file, made when it is not there.
    key : str
        Hexadecimal digits.
    timeout : float
        Seconds to wait for another holder; after that, go on without the lock.

    Yields
    ------
    bool
        Whether the lock is held.
    """
    descriptor = -1
    held = False
    if _SET is not None:
        with contextlib.suppress(OSError):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            # O_NOFOLLOW: otherwise a link at this path could make this process lock a file that
            # another user chose.
            descriptor = os.open(path, flags, 0o600)
    try:
        if descriptor >= 0:
            held = _acquire(descriptor, _offset(key), timeout)
        yield held
    finally:
        if held:
            # Unlock explicitly, because a child that was forked meanwhile shares the description.
            with contextlib.suppress(OSError):
                _set(descriptor, fcntl.F_UNLCK, _offset(key))
        if descriptor >= 0:
            os.close(descriptor)


def _acquire(descriptor: int, offset: int, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    pause = 0.002
    while True:
        try:
            _set(descriptor, fcntl.F_WRLCK, offset)
            return True
        except (BlockingIOError, PermissionError):  # noqa: PERF203 - held by another
            if time.monotonic() >= deadline:
                return False
            # Linux has a waiting call, but without a time limit. Signal handlers must also run in
            # between.
            time.sleep(pause)
            pause = min(pause * 1.5, 0.025)
        except OSError:
            return False


def _set(descriptor: int, kind: int, offset: int) -> None:
    assert _SET is not None
    fcntl.fcntl(descriptor, _SET, _FLOCK.pack(kind, os.SEEK_SET, offset, 1, 0))


def _offset(key: str) -> int:
    # 60 bits keep the offset positive. Two keys with the same offset only wait for each other.
    return int(key[:15], 16)
