"""A time limit for operations without one."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def with_time_limit(seconds: float, operation: Callable[[], Any]) -> Any:
    """Run an operation in a thread; return its result or raise its exception.

    An operation that takes too long continues, and nobody waits for it. The end of the process does
    not wait either, because the thread is a daemon.

    Raise TimeoutError if it takes longer.
    """
    answer: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answer.put((operation(), None))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller gets it
            answer.put((None, error))

    # Use a new daemon thread each time, which does not keep the process alive. A hanging operation
    # is left behind.
    threading.Thread(target=run, name="culaunch-remote-cache", daemon=True).start()
    try:
        value, error = answer.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer in {seconds:g} s") from None
    if error is not None:
        raise error
    return value
