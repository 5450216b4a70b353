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
    """Entries by name, of a server that may be slow, lie, or die.

    Parameters
    ----------
    url : str
        Where it is.
    keys : tuple of PublicKey
        If there are any: whose signature an entry must have.
    signing_key : SecretKey or None
        What is written is signed with it.
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
        self.shown = shown(url)  # as messages show it: without a password
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
        # In which process it is not asked, or not written to, any more.
        self._is_off = self._is_only_read = 0
        self.failure: Exception | None = None  # why it is not asked any more

    def fetch(self, name: str) -> bytes | None:
        """Return the bytes of an entry, or None. This never raises.

        With keys, a trusted key has signed the bytes. The caller checks the digest.
        """
        data = self._asked(lambda: self._read(name))
        return data if isinstance(data, bytes) else None

    def send(self, name: str, data: bytes) -> None:
        """Write an entry, soon and in another thread; it is never an error."""
        # With keys and without a signing key nothing is written: readers would refuse it.
        if self.is_written and not self.is_stopped:
            self._writer.put(name, data)

    def fetch_signed(self, name: str) -> bytes | None:
        """Return the bytes of an entry that a trusted key signed, or None: always without keys."""
        return self.fetch(name) if self._keys else None

    def send_signed(self, name: str, data: bytes) -> None:
        """Write an entry as :meth:`send` does, if there is a key to sign it with."""
        if self._signing_key is not None:
            self.send(name, data)

    @property
    def has_keys(self) -> bool:
        """Whether it is known whose signatures are to be believed."""
        return bool(self._keys)

    @property
    def signs(self) -> bool:
        """Whether what is written is signed."""
        return self._signing_key is not None

    def list_keys(self, suffix: str = ".entry") -> set[str] | None:
        """Return the keys of all entries of a kind, or None if the server cannot be used."""
        found = self._asked(lambda: self._connected().keys(suffix), patience=10)
        return found if isinstance(found, set) else None

    def flush(self, seconds: float) -> bool:
        """Wait until what was sent is written; return whether it is."""
        return self._writer.flush(seconds)

    @property
    def is_stopped(self) -> bool:
        """Whether it failed, and is not asked any more by this process."""
        return self._is_off == os.getpid()

    def warn(self, message: str) -> None:
        """Say what is wrong with it."""
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
        """Write an entry; return whether that worked, and warn once if it did not."""
        if self.is_stopped or self._is_only_read == os.getpid():
            return False

        def write() -> None:
            place = self._connected()
            # The signature first: an entry is there when it can be believed.
            if self._signing_key is not None:
                place.write(name + SUFFIX, self._signing_key.sign(data, f"file:{name}"))
            place.write(name, data)

        try:
            with_time_limit(self._timeout, write)
            return True
        except (PermissionError, NotImplementedError) as error:
            if self._is_only_read != os.getpid():
                self._is_only_read = os.getpid()
                self.warn(f"it is read but not written to: {_text(error)}")
        except Exception as error:  # noqa: BLE001 - a server's client may raise anything
            self._give_up(error)
        return False

    def _asked(self, operation: Callable[[], Any], patience: float = 1) -> Any:
        """Return what the server answers; None when there is nothing, or nothing to be believed."""
        if self.is_stopped:
            return None
        try:
            # No client of fsspec keeps a time limit in all of its steps.
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
            # A client has threads and connections, which a fork does not take along.
            if self._place is None or self._place[0] != os.getpid():
                self._place = (os.getpid(), Place(self._url))
            return self._place[1]

    def _give_up(self, error: Exception) -> None:
        with self._lock:
            if self.is_stopped:
                return
            self._is_off = os.getpid()
            self.failure = error
        self.warn(f"{_text(error)}; it is not used any more by this process")

    def _drop(self) -> None:
        self.warn("it is too slow: some entries are not written to it")


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
