"""The directories of a cache on this machine: its own, and the bundles."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

from culaunch._base.trusted import TrustedDirectory
from culaunch._cache.entry import BadEntryError
from culaunch._cache.image import IMAGES
from culaunch._errors import CacheWarning

if TYPE_CHECKING:
    from culaunch._cache.store import Store
    from culaunch._image import Image


class LocalEntries:
    """Images on this machine; a cache that cannot be used causes one warning.

    Parameters
    ----------
    store : Store
        The cache's own directory.
    bundles : tuple of str
        Directories that are read after it, and never written to.
    """

    def __init__(self, store: Store, bundles: tuple[str, ...]) -> None:
        self.store = store
        self.bundles = bundles
        self._warned: set[str] = set()

    def read_own(self, key: str) -> Image | None:
        """Return the image of a key in the cache's own directory."""
        directory = self.open()
        if directory is None:
            return None
        with directory:
            return _read(directory, key, own=True)

    def read_bundle(self, key: str) -> Image | None:
        """Return the image of a key in a bundle."""
        for path in self.bundles:
            directory = self._open_bundle(path)
            if directory is None:
                continue
            with directory:
                image = _read(directory, key, own=False)
            if image is not None:
                return image
        return None

    def publish(self, key: str, entry: bytes) -> bool:
        """Store the bytes of an entry; return whether this worked."""
        directory = self.open()
        if directory is None:
            return False
        # It may have been opened only to report why it is unusable. Publishing opens it again.
        directory.close()
        try:
            self.store.publish(IMAGES.name(key), entry)
        except OSError as error:
            self.warn(f"an image was compiled but not cached: {error.strerror or error}")
            return False
        return True

    def open(self) -> TrustedDirectory | None:
        """Open the cache's own directory; None if it cannot be used."""
        try:
            return self.store.open()
        except OSError as error:
            self.warn(f"it is not used: {error.strerror or error}")
            return None

    def _open_bundle(self, path: str) -> TrustedDirectory | None:
        try:
            return TrustedDirectory.open(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.warn(f"the bundle {path!r} is not used: {error.strerror or error}")
            return None

    def warn(self, message: str) -> None:
        """Issue a warning once."""
        # A program that compiles a hundred kernels on a full disk should warn only once.
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(f"cache {self.store.path!r}: {message}", CacheWarning, stacklevel=2)


def _read(directory: TrustedDirectory, key: str, *, own: bool) -> Image | None:
    try:
        return IMAGES.read(directory, key, own=own)
    except BadEntryError as error:
        path = os.path.join(directory.path, IMAGES.name(key))
        warnings.warn(f"cache entry {path!r} {error}; compiling again", CacheWarning, 2)
        return None
