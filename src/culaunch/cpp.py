"""C++ that launches kernels: compiled at run time, or built with the installed headers."""

from culaunch._embed import cmake_dir, embed, include_dir
from culaunch._inline import build, build_inline, load_inline, stubs

__all__ = [
    "build",
    "build_inline",
    "cmake_dir",
    "embed",
    "include_dir",
    "load_inline",
    "stubs",
]
