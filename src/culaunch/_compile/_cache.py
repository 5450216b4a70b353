"""``Cache``: compiled images on the disk, verified on every read."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._compile._defaults import default_max_bytes, default_path, default_shipped
from culaunch._compile._entry import BadEntryError, pack_entry, unpack_entry
from culaunch._compile._lock import lock_key
from culaunch._compile._store import (
    drop_entry,
    entry_path,
    evict,
    list_entries,
    prepare_directory,
    publish_entry,
    read_entry,
    remove_stale_temporaries,
    touch_entry,
)
from culaunch._errors import CacheWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from culaunch._image import Image


_RECOUNT = 64


@dataclass(frozen=True)
class CacheInfo:
    """What a cache holds."""

    path: str
    usable: bool
    reason: str
    """Why it is not usable, or ``""``."""
    entries: int
    size: int
    """Bytes in entries."""
    max_bytes: int
    shipped: tuple[str, ...]


class Cache:
    """A directory of compiled images.

    Every entry is checked against its SHA-256 when it is read; one that does not match is dropped
    and compiled again, with a :class:`CacheWarning`. No failure of the cache fails a compile.

    Parameters
    ----------
    path : str or os.PathLike, optional
        The directory: it must belong to the user, and nobody else may write to it. By default
        ``$CULAUNCH_CACHE_DIR``, else ``culaunch`` in ``$XDG_CACHE_HOME``, else in ``~/.cache``.
    max_bytes : int, optional
        Above this, the entries not used longest are removed. By default
        ``$CULAUNCH_CACHE_MAX_SIZE`` (such as ``512M``), else 2 GiB.
    shipped : iterable of str or os.PathLike, optional
        Directories of the same form that an application ships; they are looked in when the
        directory itself has no entry, and never written to. By default those in
        ``$CULAUNCH_CACHE_SHIPPED``, separated as in ``$PATH``.
    lock_timeout : float, optional
        Seconds to wait for another process that compiles the same thing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int | None = None,
        shipped: Iterable[str | os.PathLike[str]] | None = None,
        lock_timeout: float = 300.0,
    ) -> None:
        self.path = os.path.abspath(default_path() if path is None else os.fspath(path))
        self.max_bytes = default_max_bytes() if max_bytes is None else max_bytes
        if self.max_bytes <= 0:
            raise ValueError(f"max_bytes must be positive (got {max_bytes})")
        given = default_shipped() if shipped is None else shipped
        self.shipped = tuple(os.path.abspath(os.fspath(directory)) for directory in given)
        self.lock_timeout = lock_timeout
        self._checked: bool | None = None
        self._warned: set[str] = set()
        self._size: int | None = None
        self._stored = 0
        self._size_lock = threading.Lock()

    def get_or_make(self, key: str, make: Callable[[], Image]) -> Image:
        """Give the image of a key; make and keep it when it is not there.

        Among all threads and processes that ask for a key at the same time, one makes it.

        Parameters
        ----------
        key : str
            64 hexadecimal digits that stand for everything that the image depends on.
        make : callable
            Makes the image. What it raises is raised; nothing is kept then.
        """
        image = self.lookup(key)
        if image is not None:
            return image
        if not self._usable():
            return make()
        with lock_key(os.path.join(self.path, ".lock"), key, self.lock_timeout):
            # Another may have made it while this one waited for the lock.
            image = self._read(self.path, key, own=True)
            if image is None:
                image = make()
                self.store(key, image)
        return image

    def lookup(self, key: str) -> Image | None:
        """Give the image of a key if it is there and intact."""
        if self._usable():
            image = self._read(self.path, key, own=True)
            if image is not None:
                return image
        for directory in self.shipped:
            image = self._read(directory, key, own=False)
            if image is not None:
                return image
        return None

    def store(self, key: str, image: Image) -> bool:
        """Keep an image; give whether that worked, and warn once if it did not."""
        if not self._usable():
            return False
        entry = pack_entry(key, image)
        try:
            self._publish(key, entry)
        except OSError as error:
            self._warn(f"an image was compiled but not kept: {error.strerror or error}")
            return False
        self._account(key, len(entry))
        return True

    def info(self) -> CacheInfo:
        """Say where the cache is, whether it can be used and what it holds."""
        reason = prepare_directory(self.path) or ""
        entries = list_entries(self.path)
        return CacheInfo(
            self.path,
            not reason,
            reason,
            len(entries),
            sum(entry.size for entry in entries),
            self.max_bytes,
            self.shipped,
        )

    def verify(self, *, drop: bool = False) -> list[str]:
        """Read every entry; give the paths of those that are not what was written.

        Parameters
        ----------
        drop : bool, optional
            Whether to remove them. (Without it, each is dropped when it is next asked for.)
        """
        bad = []
        for stored in list_entries(self.path):
            found = read_entry(stored.path)
            if found is None:
                continue
            try:
                unpack_entry(stored.key, found[0])
            except BadEntryError:
                bad.append(stored.path)
                if drop:
                    drop_entry(stored.path, found[1])
        return bad

    def clear(self) -> int:
        """Remove every entry, and headers that were unpacked; give how many entries there were."""
        removed = 0
        for stored in list_entries(self.path):
            with contextlib.suppress(OSError):
                os.unlink(stored.path)
                removed += 1
        remove_stale_temporaries(self.path, older=0.0)
        import shutil

        shutil.rmtree(os.path.join(self.path, "headers"), ignore_errors=True)
        self._size = None
        return removed

    def private_directory(self, *parts: str) -> str:
        """Give a directory in the cache that is only the user's, or a temporary one."""
        if not self._usable():
            import tempfile

            return tempfile.mkdtemp(prefix="culaunch-")
        path = os.path.join(self.path, *parts)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def __reduce__(self) -> tuple[object, ...]:
        # For the workers of an executor.
        return _rebuild, (self.path, self.max_bytes, self.shipped, self.lock_timeout)

    def __repr__(self) -> str:
        return f"<culaunch.Cache {self.path!r}>"

    def _read(self, directory: str, key: str, *, own: bool) -> Image | None:
        path = entry_path(directory, key)
        found = read_entry(path)
        if found is None:
            return None
        entry, status = found
        try:
            image = unpack_entry(key, entry)
        except BadEntryError as error:
            warnings.warn(f"cache entry {path!r} {error}; compiling again", CacheWarning, 2)
            if own:
                drop_entry(path, status)
            return None
        if own:
            touch_entry(path, status)
        return image

    def _publish(self, key: str, entry: bytes) -> None:
        path = entry_path(self.path, key)
        try:
            publish_entry(path, entry)
        except FileNotFoundError:
            # Somebody removed the whole directory since it was checked.
            self._checked = None
            if self._usable():
                publish_entry(path, entry)

    def _account(self, key: str, size: int) -> None:
        """Keep a running total, so that the directory is read only when it may be too full."""
        with self._size_lock:
            self._size = None if self._size is None else self._size + size
            self._stored += 1
            # Other processes store as well, so the total is taken anew now and then.
            stale = self._size is None or self._stored % _RECOUNT == 0
            if stale or (self._size or 0) > self.max_bytes:
                self._size = evict(self.path, self.max_bytes, keep=key)

    def _usable(self) -> bool:
        if self._checked is None:
            reason = prepare_directory(self.path)
            self._checked = reason is None
            if reason is not None:
                self._warn(f"it is not used: {reason}")
        return self._checked

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(f"cache {self.path!r}: {message}", CacheWarning, stacklevel=2)


def _rebuild(path: str, max_bytes: int, shipped: tuple[str, ...], lock_timeout: float) -> Cache:
    return Cache(path, max_bytes=max_bytes, shipped=shipped, lock_timeout=lock_timeout)


def default_cache() -> Cache:
    """Give the cache that the environment describes, the same object while that stays the same."""
    get = os.environ.get
    return _cache_of(
        default_path(), get("CULAUNCH_CACHE_MAX_SIZE"), get("CULAUNCH_CACHE_SHIPPED"), os.getpid()
    )


def checked_cache(cache: bool | Cache) -> Cache | None:
    """Check what the caller gave for ``cache=``."""
    if isinstance(cache, Cache):
        return cache
    if not isinstance(cache, bool):
        raise TypeError(f"cache must be True, False or a culaunch.Cache (got {cache!r})")
    return default_cache() if cache else None


@functools.lru_cache(maxsize=16)
def _cache_of(path: str, max_size: str | None, shipped: str | None, process: int) -> Cache:  # noqa: ARG001
    return Cache(path)
