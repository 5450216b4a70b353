"""Compile many sources at once, hold headers in memory, and make fatbins."""

from culaunch._compile.fatbins import fatbin
from culaunch._compile.headers import Headers
from culaunch._compile.many import compile_many
from culaunch._farm.progress import Progress
from culaunch._farm.ray_executor import RayExecutor

__all__ = [
    "Headers",
    "Progress",
    "RayExecutor",
    "compile_many",
    "fatbin",
]
