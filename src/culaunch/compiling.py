"""Compile many sources at once, hold headers in memory, and make fatbins."""

from culaunch._compile import Headers, compile_many, fatbin
from culaunch._farm import Progress, RayExecutor

__all__ = [
    "Headers",
    "Progress",
    "RayExecutor",
    "compile_many",
    "fatbin",
]
