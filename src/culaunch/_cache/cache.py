"""``Cache``: compiled images on the disk, verified on every read."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._base.checks import checked_flag, checked_path, checked_text
from culaunch._base.trusted import TrustedDirectory, make_private
from culaunch._base.values import spell
from culaunch._cache.entry import BadEntryError, pack_entry, unpack_entry
from culaunch._cache.lock import lock_key
from culaunch._cache.place import default_max_bytes, default_path, default_shipped
from culaunch._cache.store import (
    drop_entry,
    entry_name,
    evict,
    is_library_intact,
    key_of,
    list_entries,
    list_temporaries,
    note_name,
    remove_entry,
    remove_stale_temporaries,
    touch_entry,
)
from culaunch._errors import CacheWarning
from culaunch._image import Image

if TYPE_CHECKING:
    from collections.abc import Callable

_RECOUNT = 64
_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class CacheInfo:
    """What a cache holds."""

    path: str
    usable: bool
    reason: str
    """Why it is not usable, or ``""``."""
    entries: int
    """Compiled images, and libraries of :func:`culaunch.load_inline`."""
    size: int
    """Bytes in entries and in what writers left."""
    max_bytes: int
    shipped: tuple[str, ...]
    libraries: int = 0
    """How many of the entries are libraries."""
    leftovers: int = 0
    """Files of writers that are at work, or were stopped there."""


class Cache:
    """A directory of compiled images.

    Every entry is checked against its SHA-256 when it is read; one that does not match is dropped
    and compiled again, with a :class:`CacheWarning`. No failure of the cache fails a compile.

    Parameters
    ----------
    path : str or os.PathLike, optional
        The directory: it must belong to the user or to root, and nobody else may write to it. By
        default ``$CULAUNCH_CACHE_DIR``, else ``culaunch`` in ``$XDG_CACHE_HOME``, else in
        ``~/.cache``.
    max_bytes : int, optional
        Above this, the entries not used longest are removed. By default
        ``$CULAUNCH_CACHE_MAX_SIZE`` (such as ``512M``), else 2 GiB.
    shipped : str, os.PathLike, or iterable of them, optional
        Directories of the same form that an application ships; they are looked in when the
        directory itself has no entry, and never written to. They are used under the same rule as
        `path`. By default those in ``$CULAUNCH_CACHE_SHIPPED``, separated as in ``$PATH``.
    lock_timeout : float, optional
        Seconds to wait for another process that compiles the same thing.

    Raises
    ------
    TypeError, ValueError
        If an argument is not what it should be.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int | None = None,
        shipped: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
        lock_timeout: float = 300.0,
    ) -> None:
        self.path = os.path.abspath(default_path() if path is None else checked_path("path", path))
        self.max_bytes = default_max_bytes() if max_bytes is None else max_bytes
        if isinstance(self.max_bytes, bool) or not isinstance(self.max_bytes, int):
            raise TypeError(f"max_bytes must be an int, in bytes (got {spell(max_bytes)})")
        if self.max_bytes <= 0:
            raise ValueError(f"max_bytes must be positive (got {max_bytes})")
        self.shipped = _shipped(shipped)
        if isinstance(lock_timeout, bool) or not isinstance(lock_timeout, (int, float)):
            raise TypeError(f"lock_timeout must be a number of seconds (got {spell(lock_timeout)})")
        if not lock_timeout >= 0:
            raise ValueError(f"lock_timeout must not be negative (got {lock_timeout!r})")
        self.lock_timeout = lock_timeout
        self._warned: set[str] = set()
        self._size: int | None = None
        self._stored = 0
        self._size_lock = threading.Lock()

    def get_or_make(self, key: str, make: Callable[[], Image]) -> Image:
        """Return the image of a key; make and keep it when it is not there.

        Among all threads and processes that ask for a key at the same time, one makes it.

        Parameters
        ----------
        key : str
            64 hexadecimal digits that stand for everything that the image depends on.
        make : callable
            Makes the image. What it raises is raised; nothing is kept then.

        Raises
        ------
        TypeError, ValueError
            If `key` is no such text, or `make` returns no image.
        """
        if not callable(make):
            raise TypeError(f"make must be callable (got {spell(make)})")
        image = self.lookup(key)
        if image is not None:
            return image
        directory = self._open()
        if directory is None:
            return _checked_image("make() must return", make())
        directory.close()
        with lock_key(os.path.join(self.path, ".lock"), key, self.lock_timeout):
            # Another may have made it while this one waited for the lock.
            image = self._read_own(key)
            if image is None:
                image = _checked_image("make() must return", make())
                self.store(key, image)
        return image

    def lookup(self, key: str) -> Image | None:
        """Return the image of a key if it is there and intact."""
        image = self._read_own(_checked_key(key))
        if image is not None:
            return image
        for path in self.shipped:
            directory = self._open_shipped(path)
            if directory is None:
                continue
            with directory:
                image = _read(directory, key, own=False)
            if image is not None:
                return image
        return None

    def store(self, key: str, image: Image) -> bool:
        """Keep an image; return whether that worked, and warn once if it did not."""
        entry = pack_entry(_checked_key(key), _checked_image("image must be", image))
        try:
            if not self._publish(entry_name(key), entry):
                return False
        except OSError as error:
            self._warn(f"an image was compiled but not kept: {error.strerror or error}")
            return False
        self._account(entry_name(key), len(entry))
        return True

    def read_note(self, key: str) -> bytes | None:
        """Return what :meth:`keep_note` kept, if it is there."""
        _checked_key(key)
        directory = self._open()
        if directory is None:
            return None
        with directory:
            found = directory.read(note_name(key))
            if found is None:
                return None
            touch_entry(directory, note_name(key), found[1])
        return found[0]

    def keep_note(self, key: str, note: bytes) -> None:
        """Keep something that saves work later; that it fails is of no account."""
        _checked_key(key)
        if not isinstance(note, bytes):
            raise TypeError(f"note must be bytes (got {spell(note)})")
        with contextlib.suppress(OSError):
            if self._publish(note_name(key), note):
                self._account(note_name(key), len(note))

    def info(self) -> CacheInfo:
        """Say where the cache is, whether it can be used and what it holds."""
        try:
            with TrustedDirectory.open(self.path, make=True) as directory:
                entries = list_entries(directory)
                left = list_temporaries(directory)
        except OSError as error:
            reason = error.strerror or str(error)
            return CacheInfo(self.path, False, reason, 0, 0, self.max_bytes, self.shipped)
        return CacheInfo(
            self.path,
            True,
            "",
            sum(not entry.is_note for entry in entries),
            sum(item.size for item in (*entries, *left)),
            self.max_bytes,
            self.shipped,
            sum(entry.is_library for entry in entries),
            len(left),
        )

    def verify(self, *, drop: bool = False) -> list[str]:
        """Read every entry; return the paths of those that are not what was written.

        Parameters
        ----------
        drop : bool, optional
            Whether to remove them. (Without it, each is dropped when it is next asked for.)

        Raises
        ------
        OSError
            If the directory cannot be used: it is not there for a reason other than that nothing
            was compiled yet, or others may write to it.
        """
        checked_flag("drop", drop)
        bad = []
        with contextlib.suppress(FileNotFoundError), TrustedDirectory.open(self.path) as directory:
            for stored in list_entries(directory):
                if stored.is_note:
                    continue
                if stored.is_library:
                    is_bad = not is_library_intact(directory, stored)
                    if is_bad and drop:
                        remove_entry(directory, stored)
                else:
                    is_bad = _is_bad(directory, stored.names[0], key_of(stored), drop)
                if is_bad:
                    bad.append(os.path.join(self.path, stored.path))
        return bad

    def clear(self) -> int:
        """Remove every entry, and headers that were unpacked; return how many entries there were.

        Raises
        ------
        OSError
            If the directory cannot be used.
        """
        removed = 0
        with contextlib.suppress(FileNotFoundError), TrustedDirectory.open(self.path) as directory:
            for stored in list_entries(directory):
                removed += remove_entry(directory, stored) and not stored.is_note
            remove_stale_temporaries(directory, older=0.0)
            import shutil

            shutil.rmtree(os.path.join(self.path, "headers"), ignore_errors=True)
        self._size = None
        return removed

    def private_directory(self, *parts: str) -> str:
        """Return a directory in the cache that is only the user's, or a temporary one."""
        for part in parts:
            if checked_text("a part", part) in ("", ".", "..") or os.sep in part:
                raise ValueError(f"a part must be the name of a directory (got {part!r:.100})")
        path = os.path.join(self.path, *parts)
        directory = self._open()
        try:
            if directory is not None:
                with directory:
                    make_private(path)
                    TrustedDirectory.open(path).close()
                return path
        except OSError as error:
            self._warn(f"{path!r} is not used: {error.strerror or error}")
        import tempfile

        return tempfile.mkdtemp(prefix="culaunch-")

    def __reduce__(self) -> tuple[object, ...]:
        # For the workers of an executor.
        return _rebuild, (self.path, self.max_bytes, self.shipped, self.lock_timeout)

    def __repr__(self) -> str:
        return f"<culaunch.Cache {self.path!r}>"

    def _read_own(self, key: str) -> Image | None:
        directory = self._open()
        if directory is None:
            return None
        with directory:
            return _read(directory, key, own=True)

    def _publish(self, name: str, entry: bytes) -> bool:
        directory = self._open()
        if directory is None:
            return False
        with directory:
            try:
                directory.publish(name, entry)
                return True
            except FileNotFoundError:
                # Somebody removed the whole directory since it was opened.
                again = self._open()
        if again is None:
            return False
        with again:
            again.publish(name, entry)
        return True

    def _account(self, name: str, size: int) -> None:
        """Keep a running total, so that the directory is read only when it may be too full."""
        with self._size_lock:
            self._size = None if self._size is None else self._size + size
            self._stored += 1
            # Other processes store as well, so the total is taken anew now and then.
            stale = self._size is None or self._stored % _RECOUNT == 0
            if stale or (self._size or 0) > self.max_bytes:
                directory = self._open()
                if directory is not None:
                    with directory:
                        self._size = evict(directory, self.max_bytes, keep=name)

    def _open(self) -> TrustedDirectory | None:
        """Open the directory, anew each time: somebody may have put another in its place."""
        try:
            return TrustedDirectory.open(self.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._warn(f"it is not used: {error.strerror or error}")
            return None
        try:
            return TrustedDirectory.open(self.path, make=True)
        except OSError as error:
            self._warn(f"it is not used: {error.strerror or error}")
            return None

    def _open_shipped(self, path: str) -> TrustedDirectory | None:
        try:
            return TrustedDirectory.open(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(f"the shipped directory {path!r} is not used: {error.strerror or error}")
            return None

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(f"cache {self.path!r}: {message}", CacheWarning, stacklevel=2)


def _read(directory: TrustedDirectory, key: str, *, own: bool) -> Image | None:
    name = entry_name(key)
    found = directory.read(name)
    if found is None:
        return None
    entry, status = found
    try:
        image = unpack_entry(key, entry)
    except BadEntryError as error:
        path = os.path.join(directory.path, name)
        warnings.warn(f"cache entry {path!r} {error}; compiling again", CacheWarning, 2)
        if own:
            drop_entry(directory, name, status)
        return None
    if own:
        touch_entry(directory, name, status)
    return image


def _is_bad(directory: TrustedDirectory, name: str, key: str, drop: bool) -> bool:
    found = directory.read(name)
    if found is None:
        return False
    try:
        unpack_entry(key, found[0])
    except BadEntryError:
        if drop:
            drop_entry(directory, name, found[1])
        return True
    return False


def _checked_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"key must be a str (got {type(key).__name__})")
    if _KEY.fullmatch(key) is None:
        raise ValueError(f"key must be 64 hexadecimal digits, lower case (got {key!r})")
    return key


def _checked_image(what: str, image: object) -> Image:
    if not isinstance(image, Image):
        raise TypeError(f"{what} a culaunch.Image (got {type(image).__name__})")
    return image


def _shipped(given: object) -> tuple[str, ...]:
    if given is None:
        given = default_shipped()
    if isinstance(given, (str, os.PathLike)):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise TypeError(f"shipped must be directories (got {spell(given)})")
    return tuple(os.path.abspath(checked_path("shipped", directory)) for directory in given)


def _rebuild(path: str, max_bytes: int, shipped: tuple[str, ...], lock_timeout: float) -> Cache:
    return Cache(path, max_bytes=max_bytes, shipped=shipped, lock_timeout=lock_timeout)


def default_cache() -> Cache:
    """Return the cache that the environment describes, one object while that stays the same."""
    get = os.environ.get
    return _cache_of(
        default_path(), get("CULAUNCH_CACHE_MAX_SIZE"), get("CULAUNCH_CACHE_SHIPPED"), os.getpid()
    )


def checked_cache(cache: bool | Cache) -> Cache | None:
    """Check what the caller gave for ``cache=``."""
    if isinstance(cache, Cache):
        return cache
    if not isinstance(cache, bool):
        raise TypeError(f"cache must be True, False or a culaunch.Cache (got {spell(cache)})")
    return default_cache() if cache else None


@functools.lru_cache(maxsize=16)
def _cache_of(path: str, max_size: str | None, shipped: str | None, process: int) -> Cache:  # noqa: ARG001
    return Cache(path)
