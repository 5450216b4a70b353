"""The remote cache as the local one uses it: reads and writes never raise, and end in time."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from culaunch._base.fork_lock import ForkLock
from culaunch._cache.remote.minisign import SUFFIX, SignatureError, verify_any
from culaunch._cache.remote.place import Place, shown
from culaunch._cache.remote.time_limit import with_time_limit
from culaunch._cache.remote.writer import Writer
from culaunch._errors import CacheWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._cache.remote.minisign import PublicKey, SecretKey


class Server:
    """Entries by name, from a server that may be slow, hostile, or fail.

    Parameters
    ----------
    url : str
        The server's address.
    keys : tuple of PublicKey
        One of these keys must have signed an entry, if there are any.
    signing_key : SecretKey or None
        The key that signs written entries.
    timeout : float
        Seconds for one read or write.
    is_written : bool
        Whether entries are to be written.
    """

    def __init__(
        self,
        url: str,
        keys: tuple[PublicKey, ...],
        signing_key: SecretKey | None,
        timeout: float,
        *,
        is_written: bool,
    ) -> None:
        self.shown = shown(url)  # for messages, without the password
        # HTTP is read-only. And if only signed entries are trusted, unsigned ones are useless.
        self.is_written = (
            is_written
            and not url.startswith(("http://", "https://"))
            and (signing_key is not None or not keys)
        )
        self._url = url
        self._keys = keys
        self._signing_key = signing_key
        self._timeout = timeout
        self._writer = Writer(self.write_now, self._drop)
        self._lock = ForkLock()
        self._place: tuple[int, Place] | None = None
        # The process in which the server is no longer asked, or no longer written to.
        self._is_off = self._is_only_read = 0
        self.failure: Exception | None = None  # why it is no longer asked

    def fetch(self, name: str) -> bytes | None:
        """Return the bytes of an entry, or None. This never raises.

        With keys, a trusted key has signed the bytes. The caller checks the digest.
        """
        data = self._answer(lambda: self._read(name))
        return data if isinstance(data, bytes) else None

    def send(self, name: str, data: bytes) -> None:
        """Write an entry in the background. This never raises."""
        # With keys but no signing key, nothing is written, because readers would refuse it.
        if self.is_written and not self.is_stopped:
            self._writer.put(name, data)

    def fetch_signed(self, name: str) -> bytes | None:
        """Return the bytes of an entry that a trusted key signed, or None.

        Without keys, always None.
        """
        return self.fetch(name) if self._keys else None

    def send_signed(self, name: str, data: bytes) -> None:
        """Write an entry like :meth:`send`, if there is a key to sign it."""
        if self._signing_key is not None:
            self.send(name, data)

    @property
    def has_keys(self) -> bool:
        """Whether there are trusted keys."""
        return bool(self._keys)

    @property
    def signs(self) -> bool:
        """Whether written entries are signed."""
        return self._signing_key is not None

    def list_keys(self, suffix: str = ".entry") -> set[str] | None:
        """Return the keys of all entries of a kind, or None if the server cannot be used."""
        found = self._answer(lambda: self._connected().keys(suffix), patience=10)
        return found if isinstance(found, set) else None

    def flush(self, seconds: float) -> bool:
        """Wait until the sent entries are written; return whether they are."""
        return self._writer.flush(seconds)

    @property
    def is_stopped(self) -> bool:
        """Whether it failed, and this process no longer asks it."""
        return self._is_off == os.getpid()

    def warn(self, message: str) -> None:
        """Warn about a problem of the server."""
        warnings.warn(f"remote cache {self.shown!r}: {message}", CacheWarning, stacklevel=3)

    def _read(self, name: str) -> bytes:
        place = self._connected()
        data = place.read(name)
        if self._keys:
            try:
                signature = place.read(name + SUFFIX)
            except FileNotFoundError:
                raise SignatureError("is not signed") from None
            verify_any(self._keys, data, signature)
        return data

    def write_now(self, name: str, data: bytes) -> bool:
        """Write an entry; return whether this worked, and warn once if it did not."""
        if self.is_stopped or self._is_only_read == os.getpid():
            return False

        def write() -> None:
            place = self._connected()
            # Write the signature first, so an entry exists only when it can be trusted.
            if self._signing_key is not None:
                place.write(name + SUFFIX, self._signing_key.sign(data, f"file:{name}"))
            place.write(name, data)

        try:
            with_time_limit(self._timeout, write)
            return True
        except (PermissionError, NotImplementedError) as error:
            if self._is_only_read != os.getpid():
                self._is_only_read = os.getpid()
                self.warn(f"it is used read-only: {_text(error)}")
        except Exception as error:  # noqa: BLE001 - a server's client may raise anything
            self._give_up(error)
        return False

    def _answer(self, operation: Callable[[], Any], patience: float = 1) -> Any:
        """Return the server's answer; None if there is none, or if it is not trusted."""
        if self.is_stopped:
            return None
        try:
            # fsspec's clients do not apply a time limit to all of their steps.
            return with_time_limit(self._timeout * patience, operation)
        except FileNotFoundError:
            return None
        except SignatureError as error:
            self.warn(f"an entry {error}; compiling again")
            return None
        except Exception as error:  # noqa: BLE001 - a server's client may raise anything
            self._give_up(error)
            return None

    def _connected(self) -> Place:
        with self._lock:
            # A fork does not copy a client's threads and connections.
            if self._place is None or self._place[0] != os.getpid():
                self._place = (os.getpid(), Place(self._url))
            return self._place[1]

    def _give_up(self, error: Exception) -> None:
        with self._lock:
            if self.is_stopped:
                return
            self._is_off = os.getpid()
            self.failure = error
        self.warn(f"{_text(error)}; this process no longer uses it")

    def _drop(self) -> None:
        self.warn("it is too slow: some entries are not written to it")


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
