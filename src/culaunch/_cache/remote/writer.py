"""Write-behind: compiled entries are sent while the program continues."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING

from culaunch._errors import CacheWarning

if TYPE_CHECKING:
    from collections.abc import Callable

# The maximum number of bytes that wait for a slow server. Above it, entries are dropped.
_MOST_WAITING = 256 << 20
# Seconds that the end of a process waits for unsent entries.
_AT_EXIT = 30.0


class Writer:
    """Entries that wait to be sent, in order.

    Parameters
    ----------
    write : callable
        Sends one, by its name and its bytes; it raises nothing, and returns at once when there is
        no use in sending any more.
    too_many : callable
        Called once when entries are dropped.
    """

    def __init__(self, write: Callable[[str, bytes], object], too_many: Callable[[], None]) -> None:
        self._write = write
        self._too_many = too_many
        self._queue = _Queue()
        _writers.add(self)

    def put(self, name: str, data: bytes) -> None:
        """Send an entry in the background."""
        if self._queue.process != os.getpid():
            # A forked child has its own thread and queue.
            self._queue = _Queue()
        queue = self._queue
        with queue.changed:
            is_first_lost = False
            # Do not spend memory on entries that a server does not accept. Warn once for each
            # queue.
            if queue.size + len(data) > _MOST_WAITING:
                is_first_lost, queue.is_full = not queue.is_full, True
            else:
                queue.waiting.append((name, data))
                queue.size += len(data)
                if not queue.is_running:
                    _flush_at_exit()
                    queue.is_running = True
                    threading.Thread(
                        target=self._run, args=(queue,), name="culaunch-remote-writer", daemon=True
                    ).start()
        if is_first_lost:
            self._too_many()

    def flush(self, seconds: float) -> bool:
        """Wait until everything is sent; return whether it is."""
        queue = self._queue
        if queue.process != os.getpid():
            return True
        with queue.changed:
            return queue.changed.wait_for(lambda: not queue.is_running, seconds)

    def _run(self, queue: _Queue) -> None:
        while True:
            with queue.changed:
                if not queue.waiting:
                    queue.is_running = False
                    queue.changed.notify_all()
                    return
                name, data = queue.waiting.popleft()
            # A filter may turn the warning into an error, but nothing here could receive it.
            with contextlib.suppress(CacheWarning):
                self._write(name, data)
            with queue.changed:
                queue.size -= len(data)


class _Queue:
    """The waiting entries of one process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.waiting: deque[tuple[str, bytes]] = deque()
        self.size = 0
        self.is_running = self.is_full = False
        self.changed = threading.Condition()


_writers: weakref.WeakSet[Writer] = weakref.WeakSet()
_registered = threading.Event()


def _flush_at_exit() -> None:
    """Send the waiting entries before the process ends.

    An atexit function would be too late: by then no thread of concurrent.futures takes work, which
    clients of servers need to look a name up. So this uses the hook that ``threading`` calls first,
    as concurrent.futures does.
    """
    if _registered.is_set():
        return
    _registered.set()
    import concurrent.futures.thread  # noqa: F401 - it registers first, and is called after this

    threading._register_atexit(_flush_all)  # type: ignore[attr-defined]  # noqa: SLF001


def _flush_all() -> None:
    deadline = time.monotonic() + _AT_EXIT
    for writer in list(_writers):
        writer.flush(max(0.0, deadline - time.monotonic()))
