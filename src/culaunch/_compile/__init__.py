"""Source to image: NVRTC, nvcc, headers, the cache."""

from __future__ import annotations

from culaunch._compile._arch import set_current_device_arch
from culaunch._compile._cache import Cache, CacheInfo
from culaunch._compile._compile import compile  # noqa: A004
from culaunch._compile._headers import Headers

__all__ = ["Cache", "CacheInfo", "Headers", "compile", "set_current_device_arch"]
