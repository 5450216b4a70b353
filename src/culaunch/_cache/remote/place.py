"""Where a remote cache is: a URL, through fsspec."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from urllib.parse import urlsplit, urlunsplit

from culaunch._base.optional import optional
from culaunch._base.values import spell
from culaunch._cache.entry import KEY

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://.+", re.DOTALL)

_TEMPORARY = ".tmp-"
# As in a local cache, no write takes this long.
_STALE_SECONDS = 3600.0


class Place:
    """The files of a remote cache: ``<url>/<first two digits>/<key>.entry``, or ``.library``.

    Parameters
    ----------
    url : str
        A URL for fsspec: ``s3://bucket/folder``, ``gs://...``, ``file:///shared``, ``https://...``.

    Raises
    ------
    MissingDependencyError
        If fsspec, or a package that it needs for this kind of URL, is not installed.
    ValueError
        If fsspec knows no such kind.
    """

    def __init__(self, url: str) -> None:
        fsspec = optional("fsspec", "a remote cache", "fsspec")
        self.is_local = url.startswith(("file://", "local://"))
        try:
            # Created again in each process: fsspec's own clients do not survive a fork.
            self._files, self._root = fsspec.url_to_fs(
                url, **({"auto_mkdir": True} if self.is_local else {})
            )
        except ImportError as error:
            from culaunch._errors import MissingDependencyError

            raise MissingDependencyError(
                f"a remote cache at {shown(url)} needs another package: {error}"
            ) from error

    def read(self, name: str) -> bytes:
        """Return a file; FileNotFoundError if it does not exist."""
        data = self._files.cat_file(self._path(name))
        if not isinstance(data, bytes):
            raise OSError(f"it returned {spell(data)}, not bytes")
        return data

    def write(self, name: str, data: bytes) -> None:
        """Write a file completely or not at all."""
        path = self._path(name)
        if not self.is_local:  # an object store publishes a file atomically
            self._files.pipe_file(path, data)
            return
        _remove_stale(os.path.dirname(path))
        temporary = f"{path}{_TEMPORARY}{os.urandom(8).hex()}"
        try:
            # Next to its final path, because a rename must not cross file systems.
            self._files.pipe_file(temporary, data)
            self._share(os.path.dirname(path), temporary)
            self._files.mv(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                self._files.rm_file(temporary)
            raise

    def keys(self, suffix: str) -> set[str]:
        """Return the keys of all existing entries of a kind."""
        self._files.invalidate_cache()
        names = (path.rpartition("/")[2] for path in self._files.find(self._root))
        keys = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
        return {key for key in keys if KEY.fullmatch(key)}

    def _share(self, folder: str, file: str) -> None:
        """Give all users of the cache's directory access to the directories that were just created.

        With only their umask, users of a shared directory would lock each other out of its folders.
        """
        with contextlib.suppress(
            OSError
        ):  # the folder belongs to another user, or the disk has no modes
            mode = stat.S_IMODE(os.stat(self._root).st_mode)
            os.chmod(file, mode & 0o666)
            if stat.S_IMODE(os.stat(folder).st_mode) != mode:
                os.chmod(folder, mode)

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name[:2]}/{name}"


def _remove_stale(folder: str) -> None:
    """Remove files of killed writers, on any machine."""
    with contextlib.suppress(OSError), os.scandir(folder) as items:
        for item in items:
            if _TEMPORARY in item.name:
                with contextlib.suppress(OSError):  # removed, or owned by another user
                    if abs(time.time() - item.stat().st_mtime) >= _STALE_SECONDS:
                        os.unlink(item.path)


def checked_url(url: object) -> str:
    """Return a valid URL; otherwise raise TypeError or ValueError."""
    if not isinstance(url, str):
        raise TypeError(f"url must be a str such as 's3://bucket/folder' (got {spell(url)})")
    if _SCHEME.fullmatch(url) is None or "\0" in url or not url.isprintable():
        raise ValueError(f"url must be a URL such as 's3://bucket/folder' (got {url!r:.200})")
    return url.rstrip("/")


def shown(url: str) -> str:
    """Return a URL for messages, without its password."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return url.partition("://")[0] + "://..."
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
