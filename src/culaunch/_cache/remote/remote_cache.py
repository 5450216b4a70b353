"""``RemoteCache``: the server behind a cache, and which of its entries are trusted."""

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
    """Compiled images on a server that many machines share, behind their own caches.

    It is read if a machine's own cache has no entry. New images are written to it in the
    background. An entry must match its SHA-256. If keys are given, one of them must have signed it.
    At the first failure or time-out, this process issues a :class:`CacheWarning` and stops using
    the server.

    Parameters
    ----------
    url : str
        A URL for `fsspec <https://filesystem-spec.readthedocs.io>`_: ``s3://bucket/folder``,
        ``gs://bucket/folder`` or ``file:///shared/cache``. A URL with ``https://`` is read-only.
        Configure credentials and endpoints in fsspec.
    keys : str or iterable of str, optional
        Public keys of minisign, as text (``RW...``) or as paths of key files. Then an entry is used
        only with a signature by one of them.
    signing_key : str or os.PathLike, optional
        The file of a secret key without a password (``minisign -G -W``). It signs the entries that
        are written.
    timeout : float, optional
        Seconds that one read or write may take.
    write : bool, optional
        Whether entries are written.

    Raises
    ------
    TypeError, ValueError, OSError
        If an argument is invalid, or a key file cannot be read.

    Examples
    --------
    >>> remote = cl.cache.RemoteCache("file:///shared/cache", write=False)
    >>> cache = cl.cache.Cache("images", remote=remote)
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
        # Read the files now, to report a mistake where it was made. Keep their text, to make the
        # object picklable.
        public = tuple(PublicKey.read(one) for one in self.keys)
        secret = None if self.signing_key is None else SecretKey.open(self.signing_key)
        self._server = Server(self.url, public, secret, self.timeout, is_written=self.write)

    def flush(self, timeout: float = 60.0) -> bool:
        """Wait until all new entries are written.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.

        Returns
        -------
        bool
            Whether nothing waits any more. The end of a process waits up to 30 s.
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
        return f"<culaunch.cache.RemoteCache {self._server.shown!r}>"


def _rebuild(
    url: str, keys: tuple[str, ...], signing_key: str | None, timeout: float, write: bool
) -> RemoteCache:
    return RemoteCache(url, keys=keys, signing_key=signing_key, timeout=timeout, write=write)
