"""Compile, inspect, load, launch, embed and ship CUDA kernels.

The names below are loaded on first use, so that ``import culaunch`` needs no GPU, no toolkit
and no framework, and one half of the library does not pay for the other.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._compile import (
        Cache,
        CacheInfo,
        Headers,
        compile,  # noqa: A004
        compile_many,
        link,
    )
    from culaunch._embed import cmake_dir, embed, include_dir, load_inline
    from culaunch._errors import (
        CacheWarning,
        CompileError,
        CulaunchError,
        DriverError,
        DriverNotFoundError,
        ImageError,
        InternalError,
        KernelNotFoundError,
        LaunchError,
        MissingDependencyError,
    )

_HOME = {
    "Cache": "_compile",
    "CacheInfo": "_compile",
    "CacheWarning": "_errors",
    "CompileError": "_errors",
    "CulaunchError": "_errors",
    "DriverError": "_errors",
    "DriverNotFoundError": "_errors",
    "Headers": "_compile",
    "ImageError": "_errors",
    "InternalError": "_errors",
    "KernelNotFoundError": "_errors",
    "LaunchError": "_errors",
    "MissingDependencyError": "_errors",
    "cmake_dir": "_embed",
    "compile": "_compile",
    "compile_many": "_compile",
    "embed": "_embed",
    "include_dir": "_embed",
    "link": "_compile",
    "load_inline": "_embed",
}

__version__ = "0.1.0"

__all__ = [
    "Cache",
    "CacheInfo",
    "CacheWarning",
    "CompileError",
    "CulaunchError",
    "DriverError",
    "DriverNotFoundError",
    "Headers",
    "ImageError",
    "InternalError",
    "KernelNotFoundError",
    "LaunchError",
    "MissingDependencyError",
    "cmake_dir",
    "compile",
    "compile_many",
    "embed",
    "include_dir",
    "link",
    "load_inline",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'culaunch' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"culaunch.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
