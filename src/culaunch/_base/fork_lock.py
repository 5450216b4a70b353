"""Locks that a forked process can take."""

from __future__ import annotations

import os
import threading
import weakref


class ForkLock:
    """A reentrant lock that is free in a forked process if another thread held it.

    A forked process has only the thread that forked. A lock that another thread held would stay
    locked, and the next thread that acquires it would wait forever.
    """

    def __init__(self) -> None:
        # C++ takes and releases this lock without Python code in between, where an interrupt would
        # leave it held. Both use one object, which is read each time.
        self.current = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self.current.acquire()

    def __exit__(self, *_: object) -> None:
        self.current.release()

    def renew(self) -> None:
        """Make it free, unless this thread has it."""
        if self.current.acquire(blocking=False):
            self.current.release()
        else:
            self.current = threading.RLock()


def _renew_all() -> None:
    for lock in list(_locks):
        lock.renew()


_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
