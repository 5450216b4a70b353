"""``RemoteCache``: which server is asked behind a cache, and what of it is believed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable

from culaunch._base.checks import checked_flag, checked_number, checked_path, checked_text
from culaunch._base.values import spell
from culaunch._cache.remote.minisign import PublicKey, SecretKey
from culaunch._cache.remote.place import checked_url
from culaunch._cache.remote.server import Server


class RemoteCache:
    """Compiled images on a server that many machines reach, behind their own caches.

    It is read when a machine's own cache has no entry, and what is compiled then is written to it
    while the program goes on. An entry has to match its SHA-256 and, where keys are given, has to
    be signed by one of them. The first thing that fails, or takes longer than the time-out, is a
    :class:`CacheWarning`, and the server is not asked any more by this process.

    Parameters
    ----------
    url : str
        What `fsspec <https://filesystem-spec.readthedocs.io>`_ takes: ``s3://bucket/folder``,
        ``gs://bucket/folder``, ``file:///shared/cache``; from ``https://...`` it is only read.
        Credentials and endpoints are fsspec's configuration.
    keys : str or iterable of str, optional
        Public keys of minisign, as text (``RW...``) or as paths of their files. With them, an entry
        is used only if it has a signature by one.
    signing_key : str or os.PathLike, optional
        The file of a secret key without a password (``minisign -G -W``): what is written is signed
        with it.
    timeout : float, optional
        Seconds that one read or write may take.
    write : bool, optional
        Whether entries are written.

    Raises
    ------
    TypeError, ValueError, OSError
        If an argument is not what it should be, or the file of a key cannot be read.
    """

    def __init__(
        self,
        url: str,
        *,
        keys: str | Iterable[str] = (),
        signing_key: str | os.PathLike[str] | None = None,
        timeout: float = 5.0,
        write: bool = True,
    ) -> None:
        self.url = checked_url(url)
        if not isinstance(keys, Iterable) or isinstance(keys, (bytes, dict)):
            raise TypeError(f"keys must be public keys of minisign (got {spell(keys)})")
        given = (keys,) if isinstance(keys, str) else tuple(keys)
        self.keys = tuple(checked_text("a key in keys", one) for one in given)
        self.signing_key = (
            None
            if signing_key is None
            else os.path.abspath(checked_path("signing_key", signing_key))
        )
        self.timeout = checked_number("timeout", timeout)
        if not 0 < self.timeout < math.inf:
            raise ValueError(f"timeout must be a positive number of seconds (got {timeout!r})")
        self.write = checked_flag("write", write)
        # Read now, so that a mistake is found where it was made, and kept by their text, so that
        # the object can be pickled.
        public = tuple(PublicKey.read(one) for one in self.keys)
        secret = None if self.signing_key is None else SecretKey.open(self.signing_key)
        self._server = Server(self.url, public, secret, self.timeout, is_written=self.write)

    def flush(self, timeout: float = 60.0) -> bool:
        """Wait until what was compiled is written.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.

        Returns
        -------
        bool
            Whether nothing waits any more. The end of a process waits 30 s by itself.
        """
        return self._server.flush(checked_number("timeout", timeout))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.url, self.keys, self.signing_key, self.timeout, self.write)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RemoteCache):
            return NotImplemented
        return self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(self.__reduce__()[1])

    def __repr__(self) -> str:
        return f"<culaunch.RemoteCache {self._server.shown!r}>"


def _rebuild(
    url: str, keys: tuple[str, ...], signing_key: str | None, timeout: float, write: bool
) -> RemoteCache:
    return RemoteCache(url, keys=keys, signing_key=signing_key, timeout=timeout, write=write)
