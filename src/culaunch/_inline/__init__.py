"""C++ text, with images inside, compiled and loaded as a module of Apache TVM-FFI."""

from __future__ import annotations

from culaunch._inline.inline import load_inline

__all__ = ["load_inline"]
