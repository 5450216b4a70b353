"""C++ with images inside, compiled to libraries of Apache TVM-FFI; and stubs of such libraries."""

from __future__ import annotations

from culaunch._inline.inline import build, build_inline, load_inline
from culaunch._inline.stubs import stubs

__all__ = ["build", "build_inline", "load_inline", "stubs"]
