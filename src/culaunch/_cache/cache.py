"""``Cache``: compiled images on the disk, verified on every read."""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
from typing import TYPE_CHECKING

from culaunch._base.checks import checked_flag, checked_path, checked_text
from culaunch._base.trusted import TrustedDirectory, make_private
from culaunch._base.values import spell
from culaunch._cache.checks import checked_image, checked_key, checked_shipped
from culaunch._cache.entry import BadEntryError
from culaunch._cache.image import IMAGES
from culaunch._cache.info import CacheInfo
from culaunch._cache.library import LIBRARIES
from culaunch._cache.note import NOTES, Note
from culaunch._cache.place import default_max_bytes, default_path
from culaunch._cache.store import Store
from culaunch._errors import CacheWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from culaunch._image import Image


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
        self.shipped = checked_shipped(shipped)
        if isinstance(lock_timeout, bool) or not isinstance(lock_timeout, (int, float)):
            raise TypeError(f"lock_timeout must be a number of seconds (got {spell(lock_timeout)})")
        if not lock_timeout >= 0:
            raise ValueError(f"lock_timeout must not be negative (got {lock_timeout!r})")
        self.lock_timeout = lock_timeout
        self._store = Store(self.path, self.max_bytes)
        self._warned: set[str] = set()

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
        # Where the directory cannot be used there is nothing to wait for and nothing to keep.
        directory = self._open()
        if directory is None:
            return checked_image("make() must return", make())
        directory.close()
        # The look before the lock, which most calls end with, needs no file to be written to. The
        # lock is held until the image is in place: whoever waits finds it there.
        with self._store.lock(key, self.lock_timeout):
            # Another may have made it while this one waited for the lock.
            image = self._read_own(key)
            if image is None:
                image = checked_image("make() must return", make())
                self.store(key, image)
        return image

    def lookup(self, key: str) -> Image | None:
        """Return the image of a key if it is there and intact."""
        # The own directory first: what is shipped may be bad, and is then made again and kept here.
        image = self._read_own(checked_key(key))
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
        # A wrong argument is an error even where nothing can be kept.
        entry = IMAGES.pack(checked_key(key), checked_image("image must be", image))
        directory = self._open()
        if directory is None:
            return False
        directory.close()
        try:
            self._store.publish(IMAGES.name(key), entry)
        except OSError as error:
            self._warn(f"an image was compiled but not kept: {error.strerror or error}")
            return False
        return True

    def read_note(self, key: str) -> Note | None:
        """Return what :meth:`keep_note` kept, if it is there and intact."""
        checked_key(key)
        directory = self._open()
        if directory is None:
            return None
        with directory, contextlib.suppress(BadEntryError):
            return NOTES.read(directory, key)
        return None

    def keep_note(self, key: str, note: Note) -> None:
        """Keep something that saves work later; that it fails is of no account."""
        checked_key(key)
        if not isinstance(note, Note):
            raise TypeError(f"note must be a Note (got {spell(note)})")
        with contextlib.suppress(OSError):
            self._store.publish(NOTES.name(key), NOTES.pack(key, note))

    def info(self) -> CacheInfo:
        """Say where the cache is, whether it can be used and what it holds."""
        try:
            entries, left = self._store.look()
        except OSError as error:
            reason = error.strerror or str(error)
            return CacheInfo(self.path, False, reason, 0, 0, self.max_bytes, self.shipped)
        return CacheInfo(
            self.path,
            True,
            "",
            sum(entry.kind.counts for entry in entries),
            sum(entry.size for entry in entries) + left.size,
            self.max_bytes,
            self.shipped,
            sum(entry.kind is LIBRARIES for entry in entries),
            left.files,
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
        with contextlib.suppress(FileNotFoundError):
            return self._store.verify(drop=drop)
        return []

    def clear(self) -> int:
        """Remove every entry, and headers that were unpacked; return how many entries there were.

        Raises
        ------
        OSError
            If the directory cannot be used.
        """
        with contextlib.suppress(FileNotFoundError):
            return self._store.clear()
        return 0

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
        # For the workers of an executor, where the cache of many requests is one object.
        return _rebuild, (self.path, self.max_bytes, self.shipped, self.lock_timeout)

    def __repr__(self) -> str:
        return f"<culaunch.Cache {self.path!r}>"

    def _read_own(self, key: str) -> Image | None:
        directory = self._open()
        if directory is None:
            return None
        with directory:
            return _read(directory, key, own=True)

    def _open(self) -> TrustedDirectory | None:
        try:
            return self._store.open()
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
    try:
        return IMAGES.read(directory, key, own=own)
    except BadEntryError as error:
        path = os.path.join(directory.path, IMAGES.name(key))
        warnings.warn(f"cache entry {path!r} {error}; compiling again", CacheWarning, 2)
        return None


def _rebuild(path: str, max_bytes: int, shipped: tuple[str, ...], lock_timeout: float) -> Cache:
    return _known(path, max_bytes, shipped, lock_timeout, os.getpid())


@functools.lru_cache(maxsize=16)
def _known(
    path: str,
    max_bytes: int,
    shipped: tuple[str, ...],
    lock_timeout: float,
    process: int,  # noqa: ARG001 - what a parent has locked is locked for ever in its child
) -> Cache:
    return Cache(path, max_bytes=max_bytes, shipped=shipped, lock_timeout=lock_timeout)
