"""One line on the terminal about a wait that takes longer than two seconds."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING

from culaunch._base.terminal import is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DELAY = 2.0
_EVERY = 0.5
_CLEAR = "\r\x1b[K"
# The process has one line. Of nested waits, and of waits in several threads, the first one shows
# its text. It takes the line by popping it. It never blocks, so it is not a lock.
_turn = [True]


@contextlib.contextmanager
def waiting(what: str, delay: float | None = None) -> Iterator[Callable[[str], None]]:
    """Show the reason of a wait on standard error if that is a terminal, and remove it later.

    Parameters
    ----------
    what : str
        Such as ``"compiling demo.cu for sm_90"``. The function that the block gets replaces it.
    delay : float, optional
        Seconds until it is shown; two by default.
    """
    text = [what]
    if not is_terminal(sys.stderr) or not _take_turn():
        yield lambda _: None
        return
    done = threading.Event()
    thread = threading.Thread(
        target=_show,
        args=(text, done, DELAY if delay is None else delay),
        name="culaunch-wait",
        daemon=True,
    )
    try:
        thread.start()
        yield lambda new: text.__setitem__(0, new)
    finally:
        done.set()
        thread.join()
        _turn.append(True)


def _take_turn() -> bool:
    try:
        return _turn.pop()
    except IndexError:
        return False


def _show(text: list[str], done: threading.Event, delay: float) -> None:
    start = time.monotonic()
    if done.wait(delay):
        return
    with contextlib.suppress(OSError, ValueError):  # a terminal that is gone stops no work
        while not done.wait(_EVERY):
            seconds = int(time.monotonic() - start)
            sys.stderr.write(f"{_CLEAR}{text[0]}, {seconds} s")
            sys.stderr.flush()
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()
