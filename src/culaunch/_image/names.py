"""C++ names of kernels: the demangler is the extension's, as for its own messages."""

from culaunch._core import demangle, mangled_param_types

__all__ = ["demangle", "mangled_param_types"]
