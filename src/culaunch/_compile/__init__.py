"""Source to image: NVRTC, nvcc, headers."""

from __future__ import annotations

from culaunch._compile.architectures import set_current_device_arch
from culaunch._compile.compilation import compile  # noqa: A004
from culaunch._compile.fatbins import fatbin
from culaunch._compile.headers import Headers
from culaunch._compile.linking import link
from culaunch._compile.many import compile_many

__all__ = [
    "Headers",
    "compile",
    "compile_many",
    "fatbin",
    "link",
    "set_current_device_arch",
]
