"""Source to image: NVRTC, nvcc, headers, the cache."""

from __future__ import annotations

from culaunch._compile._arch import set_current_device_arch
from culaunch._compile._compile import compile  # noqa: A004

__all__ = ["compile", "set_current_device_arch"]
