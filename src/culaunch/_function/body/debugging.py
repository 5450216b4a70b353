"""Running bodies as plain Python for a while."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from culaunch._core import count_bodies
from culaunch._function.body.bodies import current

if TYPE_CHECKING:
    from collections.abc import Generator

_local = threading.local()


@contextlib.contextmanager
def function_debugging() -> Generator[None, None, None]:
    """Run the bodies of functions that this thread calls as plain Python.

    You can step through them in a debugger, ``print`` shows numbers, and launches happen in place.

    Yields
    ------
    None
        The bodies run as Python in the block.

    Examples
    --------
    >>> with cl.function_debugging():
    ...     result = scale(x, 2.0)
    """
    depth = getattr(_local, "depth", 0)
    _local.depth = depth + 1
    # The extension involves Python in launches only while some thread runs a body or debugs.
    # Otherwise a launch only tests this counter.
    count_bodies(1)
    try:
        yield
    finally:
        count_bodies(-1)
        _local.depth = depth


def is_debugging() -> bool:
    """Tell whether this thread runs bodies as plain Python."""
    return getattr(_local, "depth", 0) > 0


def is_in_body() -> bool:
    """Tell whether a body runs in this thread."""
    return current() is not None
