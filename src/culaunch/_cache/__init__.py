"""The cache of compiled images, and of libraries from ``load_inline``, by their inputs."""

from __future__ import annotations

from culaunch._cache.cache import Cache
from culaunch._cache.info import CacheInfo

__all__ = ["Cache", "CacheInfo"]
