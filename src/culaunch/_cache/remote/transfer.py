"""Bringing a cache and its remote one to the same entries."""

from __future__ import annotations

import contextlib
import errno
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from culaunch._base.values import counted
from culaunch._cache.entry import BadEntryError
from culaunch._cache.image import IMAGES
from culaunch._cache.library import INLINE, LIBRARIES
from culaunch._cache.remote.shared_libraries import SUFFIX, SharedLibrary, digits_of, fetch_library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from culaunch._cache.remote.server import Server
    from culaunch._cache.store import Store

# A server answers many requests at a time. The latency of the network dominates.
_AT_ONCE = 16


def push(store: Store, server: Server | None) -> int:
    """Write the entries that the server lacks; return their number."""
    there = _listed(server)
    assert server is not None
    if not server.is_written:
        raise PermissionError(errno.EPERM, "it is read-only: see RemoteCache", server.shown)

    def send_entry(key: str) -> bool:
        with store.open() as directory:
            found = directory.read(IMAGES.name(key))
        if found is None:
            return False
        # A damaged entry is no use to other machines.
        with contextlib.suppress(BadEntryError):  # the reader of the entry gets the error
            IMAGES.unpack(key, found[0])
            return server.write_now(IMAGES.name(key), found[0])
        return False

    count = _each(send_entry, sorted(_own(store) - there), server)
    return count + (_push_libraries(store, server) if server.signs else 0)


def pull(store: Store, server: Server | None, fetch: Callable[[str], bytes | None]) -> int:
    """Get the entries that this machine lacks; return their number."""
    there = _listed(server)
    assert server is not None

    def fetch_entry(key: str) -> bool:
        entry = fetch(key)
        if entry is not None:
            store.publish(IMAGES.name(key), entry)
        return entry is not None

    count = _each(fetch_entry, sorted(there - _own(store)), server)
    return count + (_pull_libraries(store, server) if server.has_keys else 0)


def _push_libraries(store: Store, server: Server) -> int:
    """Sign and write the newest library of each directory that the server lacks."""
    there = _listed(server, SUFFIX)
    found: dict[str, SharedLibrary] = {}
    for one in store.look().entries:
        if not one.folder:
            continue
        stem = one.names[0].removesuffix(".so")
        with store.open(INLINE, one.folder, make=False) as inside:
            note = LIBRARIES.read(inside, stem, is_use=False)
            content = inside.read(one.names[0])
        if note is not None and content is not None:
            found[one.folder] = SharedLibrary(one.folder, stem, content[0], note)

    def write(folder: str) -> bool:
        return server.write_now(digits_of(folder) + SUFFIX, found[folder].packed())

    return _each(write, [one for one in found if digits_of(one) not in there], server)


def _pull_libraries(store: Store, server: Server) -> int:
    """Fetch this platform's libraries that a trusted key has signed."""
    own = {digits_of(one.folder) for one in store.look().entries if one.folder}

    def take(digits: str) -> bool:
        found = fetch_library(server, digits)
        if found is None:
            return False
        with store.open(INLINE, found.folder) as inside:
            size = LIBRARIES.publish(inside, found.stem, found.content, found.note)
        store.count(f"{INLINE}/{found.folder}/{found.stem}.so", size)
        return True

    return _each(take, sorted(_listed(server, SUFFIX) - own), server)


def _own(store: Store) -> set[str]:
    names = (one.names[0] for one in store.look().entries if not one.folder and not one.is_note)
    return {name.removesuffix(IMAGES.suffix) for name in names}


def _listed(server: Server | None, suffix: str = IMAGES.suffix) -> set[str]:
    if server is None:
        raise ValueError(
            "this cache has no remote cache: give remote=, or set CULAUNCH_CACHE_REMOTE"
        )
    found = server.list_keys(suffix)
    if found is None:
        raise _failed("its entries cannot be listed", server)
    return found


def _each(transfer: Callable[[str], bool], keys: Iterable[str], server: Server) -> int:
    with ThreadPoolExecutor(_AT_ONCE, "culaunch-remote") as threads:
        done = sum(threads.map(transfer, keys))  # this is fast once the server has failed
    if server.is_stopped:
        raise _failed(f"it failed after {counted(done, 'entry')}", server)
    return done


def _failed(what: str, server: Server) -> OSError:
    error = server.failure
    number = error.errno if isinstance(error, OSError) else None
    return OSError(number or errno.EIO, f"{what} ({type(error).__name__}: {error})", server.shown)
