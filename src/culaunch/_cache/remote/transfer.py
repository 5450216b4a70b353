"""Bringing a cache and its remote one to the same entries."""

from __future__ import annotations

import contextlib
import errno
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from culaunch._cache.entry import BadEntryError
from culaunch._cache.image import IMAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from culaunch._cache.remote.server import Server
    from culaunch._cache.store import Store

# A server answers many at a time; what a machine waits for is the way there.
_AT_ONCE = 16


def push(store: Store, server: Server | None) -> int:
    """Write what the server does not have; return how many entries."""
    there = _listed(server)
    assert server is not None
    if not server.is_written:
        raise PermissionError(errno.EPERM, "it is only read: see RemoteCache", server.shown)

    def one(key: str) -> bool:
        with store.open() as directory:
            found = directory.read(IMAGES.name(key))
        if found is None:
            return False
        with contextlib.suppress(BadEntryError):  # whoever needs it hears of it
            IMAGES.unpack(key, found[0])
            return server.write_now(IMAGES.name(key), found[0])
        return False

    return _each(one, sorted(_own(store) - there), server)


def pull(store: Store, server: Server | None, fetch: Callable[[str], object]) -> int:
    """Get what this machine does not have; return how many entries."""
    there = _listed(server)
    assert server is not None
    return _each(lambda key: fetch(key) is not None, sorted(there - _own(store)), server)


def _own(store: Store) -> set[str]:
    with store.open() as directory:
        return {stored.names[0].removesuffix(IMAGES.suffix) for stored in IMAGES.list_in(directory)}


def _listed(server: Server | None) -> set[str]:
    if server is None:
        raise ValueError("this cache has no remote one: give remote=, or set CULAUNCH_CACHE_REMOTE")
    found = server.list_keys()
    if found is None:
        raise OSError(errno.EIO, "its entries cannot be listed", server.shown)
    return found


def _each(one: Callable[[str], bool], keys: Iterable[str], server: Server) -> int:
    with ThreadPoolExecutor(_AT_ONCE, "culaunch-remote") as threads:
        done = sum(threads.map(one, keys))  # which is quick once the server failed
    if server.is_stopped:
        raise OSError(errno.EIO, f"it failed after {done} entries", server.shown)
    return done
