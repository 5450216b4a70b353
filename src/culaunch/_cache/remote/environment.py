"""The environment variables of a remote cache."""

from __future__ import annotations

import functools
import os
import warnings
from typing import TYPE_CHECKING

from culaunch._base.values import spell
from culaunch._errors import CacheWarning

if TYPE_CHECKING:
    from culaunch._cache.remote.remote_cache import RemoteCache

VARIABLES = (
    "CULAUNCH_CACHE_REMOTE",
    "CULAUNCH_CACHE_REMOTE_KEYS",
    "CULAUNCH_CACHE_REMOTE_SIGNING_KEY",
    "CULAUNCH_CACHE_REMOTE_TIMEOUT",
)


def checked_remote(given: object) -> RemoteCache | None:
    """Check the argument ``remote=``; None means the environment's setting."""
    if given is None:
        return _described(*(os.environ.get(name) for name in VARIABLES))
    if given is False:
        return None
    # Imported only if needed, because most programs do not use a remote cache.
    from culaunch._cache.remote.remote_cache import RemoteCache

    if isinstance(given, str):
        return RemoteCache(given)
    if not isinstance(given, RemoteCache):
        raise TypeError(
            f"remote must be a URL, a culaunch.cache.RemoteCache, or False (got {spell(given)})"
        )
    return given


@functools.lru_cache(maxsize=16)
def _described(
    url: str | None, keys: str | None, signing_key: str | None, timeout: str | None
) -> RemoteCache | None:
    """Return the cache that the variables describe.

    A mistake in them causes a warning, and no cache is used.
    """
    if not url:
        return None
    from culaunch._cache.remote.remote_cache import RemoteCache

    try:
        return RemoteCache(
            url,
            keys=[key for key in (keys or "").split(os.pathsep) if key],
            signing_key=signing_key or None,
            timeout=float(timeout) if timeout else 5.0,
        )
    except (ValueError, OSError) as error:
        # The program is not responsible for the environment, so it continues without a remote
        # cache.
        warnings.warn(
            f"no remote cache is used; a CULAUNCH_CACHE_REMOTE variable is invalid: {error}",
            CacheWarning,
            stacklevel=4,
        )
        return None
