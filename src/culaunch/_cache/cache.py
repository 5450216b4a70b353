"""``Cache``: compiled images on the disk, verified on every read."""

from __future__ import annotations

import contextlib
import functools
import os
from typing import TYPE_CHECKING, Any, Literal

from culaunch._base.checks import checked_flag, checked_path, checked_text
from culaunch._base.trusted import TrustedDirectory, make_private
from culaunch._base.values import spell
from culaunch._cache.checks import (
    checked_bundles,
    checked_image,
    checked_key,
    checked_lock_timeout,
    checked_max_bytes,
)
from culaunch._cache.entry import BadEntryError
from culaunch._cache.image import IMAGES
from culaunch._cache.info import CacheInfo
from culaunch._cache.local import LocalEntries
from culaunch._cache.note import NOTES, Note
from culaunch._cache.place import default_path
from culaunch._cache.record import record_use
from culaunch._cache.remote.environment import checked_remote
from culaunch._cache.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from culaunch._cache.remote.remote_cache import RemoteCache
    from culaunch._image import Image


class Cache:
    """A directory of compiled images.

    Each read checks the entry against its SHA-256. A damaged entry is dropped and compiled again,
    with a :class:`CacheWarning`. A failure of the cache never fails a compilation.

    Parameters
    ----------
    path : str or os.PathLike, optional
        The directory. It must belong to you or to root, and must not be group- or world-writable.
        The default is ``$CULAUNCH_CACHE_DIR``, else ``culaunch`` in ``$XDG_CACHE_HOME``, else in
        ``~/.cache``.
    max_bytes : int, optional
        The least recently used entries are evicted above this size. The default is
        ``$CULAUNCH_CACHE_MAX_SIZE`` (such as ``512M``), else 2 GiB.
    bundles : str, os.PathLike, or iterable of them, optional
        Directories in the same format that an application ships. They are searched if the directory
        itself has no entry, and never written to. The same ownership rule as for `path` applies.
        The default is ``$CULAUNCH_CACHE_BUNDLES``, separated as in ``$PATH``.
    lock_timeout : float, optional
        Seconds to wait for another process that compiles the same image.
    remote : str, RemoteCache or False, optional
        A cache on a server, which is asked after this one. The default is the server that
        ``$CULAUNCH_CACHE_REMOTE`` and its companion variables describe. False disables it.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Examples
    --------
    >>> cache = cl.cache.Cache("images", max_bytes=1 << 30)
    >>> image = cl.compile(source, cache=cache)
    >>> cache.info().entries
    1
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int | None = None,
        bundles: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
        lock_timeout: float = 300.0,
        remote: str | RemoteCache | Literal[False] | None = None,
    ) -> None:
        self.path = os.path.abspath(default_path() if path is None else checked_path("path", path))
        self.max_bytes = checked_max_bytes(max_bytes)
        self.bundles = checked_bundles(bundles)
        self.lock_timeout = checked_lock_timeout(lock_timeout)
        self.remote = checked_remote(remote)
        self._server = None if self.remote is None else self.remote._server  # noqa: SLF001
        # Nothing is opened or created yet, so a program that compiles nothing leaves no directory
        # behind.
        self._store = Store(self.path, self.max_bytes)
        self._local = LocalEntries(self._store, self.bundles)

    def get_or_make(self, key: str, make: Callable[[], Image]) -> Image:
        """Return the image for a key; make and cache it if it is missing.

        Many threads and processes may ask for a key at the same time. Only one of them makes it, or
        fetches it from the remote cache.

        Parameters
        ----------
        key : str
            64 hexadecimal digits, a digest of everything that the image depends on.
        make : callable
            Makes the image. Its exceptions propagate, and nothing is cached then.

        Returns
        -------
        Image
            The cached image, or the new one.

        Raises
        ------
        TypeError, ValueError
            If `key` is not 64 hexadecimal digits, or `make` does not return an image.
        """
        if not callable(make):
            raise TypeError(f"make must be callable (got {spell(make)})")
        image = self.lookup(key)
        if image is not None:
            return image
        # Without a usable directory, there is no lock to wait for, and nothing is cached.
        directory = self._local.open()
        if directory is None:
            return self._fetch(key) or checked_image("make() must return", make())
        directory.close()
        # Most calls end with this lookup before the lock, which writes no file. The lock is held
        # until the image is in place, so a waiting process finds the image.
        with self._store.lock(key, self.lock_timeout):
            # Another process may have made it while this one waited for the lock. Only the holder
            # of the lock asks the remote cache: one of many processes on a machine.
            image = self._local.read_own(key) or self._fetch(key)
            if image is None:
                image = checked_image("make() must return", make())
                # Still under the lock. Otherwise the next process would find nothing and compile
                # again.
                self.store(key, image)
        record_use(key)
        return image

    def lookup(self, key: str) -> Image | None:
        """Return the image of a key, without asking the remote cache.

        Parameters
        ----------
        key : str
            The key of the image.

        Returns
        -------
        Image or None
            None if the cache has no intact image of the key.
        """
        # The own directory comes first: an entry of a bundle may be damaged, and is then compiled
        # again and cached here.
        image = self._local.read_own(checked_key(key)) or self._local.read_bundle(key)
        if image is not None:
            record_use(key)
        return image

    def store(self, key: str, image: Image) -> bool:
        """Store an image, and send it to the remote cache in time.

        Parameters
        ----------
        key : str
            The key of the image.
        image : Image
            The image.

        Returns
        -------
        bool
            Whether it was stored. The first failure is a warning.
        """
        # A wrong argument is an error even if nothing can be cached.
        entry = IMAGES.pack(checked_key(key), checked_image("image must be", image))
        if self._server is not None:
            self._server.send(IMAGES.name(key), entry)
        return self._local.publish(key, entry)

    def read_note(self, key: str) -> Note | None:
        """Return the note of :meth:`keep_note`, if it exists and is intact.

        Parameters
        ----------
        key : str
            The key of the note.

        Returns
        -------
        Note or None
            None if the cache has no intact note.
        """
        checked_key(key)
        directory = self._local.open()
        if directory is None:
            return None
        with directory, contextlib.suppress(BadEntryError):
            return NOTES.read(directory, key)
        return None

    def keep_note(self, key: str, note: Note) -> None:
        """Store a note that saves work later. A failure to store it is ignored.

        Parameters
        ----------
        key : str
            The key of the note.
        note : Note
            The note.

        Raises
        ------
        TypeError
            If `note` is not a Note.
        """
        checked_key(key)
        if not isinstance(note, Note):
            raise TypeError(f"note must be a Note (got {spell(note)})")
        with contextlib.suppress(OSError):
            self._store.publish(NOTES.name(key), NOTES.pack(key, note))

    def info(self) -> CacheInfo:
        """Return the cache's directory, whether it is usable, and its contents.

        Returns
        -------
        CacheInfo
            The facts at the time of the call.
        """
        remote = "" if self._server is None else self._server.shown
        try:
            found = self._store.look()
        except OSError as error:
            reason = error.strerror or str(error)
            return CacheInfo(
                self.path, False, reason, 0, 0, self.max_bytes, self.bundles, remote=remote
            )
        return CacheInfo(
            self.path,
            True,
            "",
            sum(not entry.is_note for entry in found.entries),
            sum(entry.size for entry in found.entries) + found.temporary_size,
            self.max_bytes,
            self.bundles,
            sum(bool(entry.folder) for entry in found.entries),
            found.temporary_files,
            remote,
        )

    def verify(self, *, drop: bool = False) -> list[str]:
        """Read every entry; return the paths of damaged ones.

        Parameters
        ----------
        drop : bool, optional
            Whether to remove them. (Without it, each is dropped when it is next asked for.)

        Returns
        -------
        list of str
            The paths of the damaged entries.

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

        Returns
        -------
        int
            The number of removed entries.

        Raises
        ------
        OSError
            If the directory cannot be used.
        """
        with contextlib.suppress(FileNotFoundError):
            return self._store.clear()
        return 0

    def push(self) -> int:
        """Upload the entries that the remote cache lacks; return their number.

        Returns
        -------
        int
            The number of uploaded entries.

        Raises
        ------
        ValueError
            If there is no remote cache.
        OSError
            If it, or this one, cannot be used.
        """
        from culaunch._cache.remote.transfer import push

        return push(self._store, self._server)

    def pull(self) -> int:
        """Download the entries that this cache lacks; return their number.

        Returns
        -------
        int
            The number of downloaded entries.

        Raises
        ------
        ValueError
            If there is no remote cache.
        OSError
            If it, or this one, cannot be used.
        """
        from culaunch._cache.remote.transfer import pull

        def fetch(key: str) -> bytes | None:
            found = self._fetched(key)
            return None if found is None else found[1]

        return pull(self._store, self._server, fetch)

    def bundle(self, output: str | os.PathLike[str], record: str | os.PathLike[str]) -> int:
        """Write the entries that a program used to a directory to ship; return their number.

        Parameters
        ----------
        output : str or os.PathLike
            A directory to name in ``bundles`` or ``$CULAUNCH_CACHE_BUNDLES``. It is created if
            necessary.
        record : str or os.PathLike
            The file that the program wrote while ``$CULAUNCH_CACHE_RECORD`` named it.

        Returns
        -------
        int
            The number of entries.

        Raises
        ------
        ValueError
            If the record is invalid, or an entry is no longer in the cache.
        OSError
            If reading or writing fails.
        """
        from culaunch._cache.bundle import write_bundle

        return write_bundle(
            checked_path("output", output),
            checked_path("record", record),
            lambda key: self.lookup(key) or self._fetch(key),
            (self.path, *self.bundles),
        )

    def private_directory(self, *parts: str) -> str:
        """Return a directory in the cache that belongs to the user only.

        If the cache cannot have one, it is temporary and is removed at the end of the process.

        Parameters
        ----------
        *parts : str
            The names of the directory and its parents in the cache.

        Returns
        -------
        str
            The path of the directory, which exists.

        Raises
        ------
        ValueError
            If a part is not the name of a single directory.
        """
        for part in parts:
            if checked_text("a part", part) in ("", ".", "..") or os.sep in part:
                raise ValueError(f"a part must be the name of a directory (got {part!r:.100})")
        path = os.path.join(self.path, *parts)
        directory = self._local.open()
        try:
            if directory is not None:
                with directory:
                    make_private(path)
                    TrustedDirectory.open(path).close()
                return path
        except OSError as error:
            self._local.warn(f"{path!r} is not used: {error.strerror or error}")
        from culaunch._base.scratch import Scratch

        return Scratch().remove_at_exit().path

    def __reduce__(self) -> tuple[object, ...]:
        # For an executor's workers, in which the cache of many requests is one object.
        remote = False if self.remote is None else self.remote
        return _rebuild, (self.path, self.max_bytes, self.bundles, self.lock_timeout, remote)

    def __repr__(self) -> str:
        return f"<culaunch.cache.Cache {self.path!r}>"

    def _fetch(self, key: str) -> Image | None:
        """Fetch an image from the remote cache, and store it here."""
        found = self._fetched(key)
        if found is None:
            return None
        self._local.publish(key, found[1])
        return found[0]

    def _fetched(self, key: str) -> tuple[Image, bytes] | None:
        """Fetch an entry from the remote cache: the image, and the bytes to store."""
        entry = None if self._server is None else self._server.fetch(IMAGES.name(key))
        if self._server is None or entry is None:
            return None
        try:
            # The server's bytes are checked like a file's before they are loaded or stored.
            image = IMAGES.unpack(key, entry)
        except BadEntryError as error:
            self._server.warn(f"the entry {IMAGES.name(key)} {error}; compiling again")
            return None
        return image, entry


def _rebuild(*state: Any) -> Cache:
    # A lock that a parent holds stays locked forever in its child, so each process has its own.
    return _shared_cache(os.getpid(), *state)


@functools.lru_cache(maxsize=16)
def _shared_cache(
    _process: int,
    path: str,
    max_bytes: int,
    bundles: tuple[str, ...],
    lock_timeout: float,
    remote: RemoteCache | Literal[False],
) -> Cache:
    return Cache(
        path, max_bytes=max_bytes, bundles=bundles, lock_timeout=lock_timeout, remote=remote
    )
