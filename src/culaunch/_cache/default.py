"""The default cache of a call."""

from __future__ import annotations

import functools
import os

from culaunch._base.values import spell
from culaunch._cache.cache import Cache
from culaunch._cache.place import default_path
from culaunch._cache.remote.environment import VARIABLES


def default_cache() -> Cache:
    """Return the cache that the environment describes: the same object until this changes."""
    # The values are part of the key, so a test or a notebook that changes one gets another cache.
    # The process is part of it, too: a forked child must not share its parent's locks and threads.
    others = tuple(os.environ.get(name) for name in _OTHERS)
    return _cache_of(default_path(), others, os.getpid())


def checked_cache(cache: bool | Cache) -> Cache | None:
    """Check the argument ``cache=``."""
    if isinstance(cache, Cache):
        return cache
    if not isinstance(cache, bool):
        raise TypeError(f"cache must be True, False or a culaunch.cache.Cache (got {spell(cache)})")
    return default_cache() if cache else None


@functools.lru_cache(maxsize=16)
def _cache_of(path: str, others: tuple[str | None, ...], process: int) -> Cache:  # noqa: ARG001
    return Cache(path)


# The environment variables of a cache, except for its path.
_OTHERS = ("CULAUNCH_CACHE_MAX_SIZE", "CULAUNCH_CACHE_BUNDLES", *VARIABLES)
