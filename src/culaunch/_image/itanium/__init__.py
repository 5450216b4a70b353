"""C++ names of kernels: the part of the Itanium C++ ABI's mangling that they use."""

from __future__ import annotations

from culaunch._image.itanium.spelling import demangle, mangled_param_types, spell

__all__ = ["demangle", "mangled_param_types", "spell"]
