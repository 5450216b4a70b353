"""Source to image: NVRTC, nvcc, headers, the cache."""

from __future__ import annotations

from culaunch._compile._arch import set_current_device_arch
from culaunch._compile._cache import Cache, CacheInfo
from culaunch._compile._compile import compile  # noqa: A004
from culaunch._compile._fatbin import fatbin
from culaunch._compile._headers import Headers
from culaunch._compile._link import link
from culaunch._compile._many import compile_many

__all__ = [
    "Cache",
    "CacheInfo",
    "Headers",
    "compile",
    "compile_many",
    "fatbin",
    "link",
    "set_current_device_arch",
]
