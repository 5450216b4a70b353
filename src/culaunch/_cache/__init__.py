"""What was made is kept by what it depends on: images, and libraries of ``load_inline``."""

from __future__ import annotations

from culaunch._cache.cache import Cache
from culaunch._cache.info import CacheInfo

__all__ = ["Cache", "CacheInfo"]
