"""Information about a cache."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CacheInfo:
    """The contents of a cache.

    Examples
    --------
    >>> info = cl.cache.Cache("images").info()
    >>> info.usable, info.entries
    (True, 0)
    """

    path: str
    usable: bool
    reason: str
    """Why it is not usable, or ``""``."""
    entries: int
    """Compiled images, and libraries of :func:`culaunch.cpp.load_inline`."""
    size: int
    """Bytes of entries and of files that writers left."""
    max_bytes: int
    bundles: tuple[str, ...]
    libraries: int = 0
    """How many of the entries are libraries."""
    leftovers: int = 0
    """Files of writers that are at work, or were stopped there."""
    remote: str = ""
    """The URL of the remote cache behind it, without a password, or ``""``."""
