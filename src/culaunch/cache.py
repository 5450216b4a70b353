"""The cache of compiled images and libraries, and caches that machines share."""

from culaunch._cache import Cache, CacheInfo
from culaunch._cache.remote.remote_cache import RemoteCache

__all__ = [
    "Cache",
    "CacheInfo",
    "RemoteCache",
]
