"""Traced Python functions, and C++ text, to fused elementwise kernels."""

from culaunch import _core
from culaunch._elementwise import _upcalls

_core.set_upcalls(elementwise=_upcalls)
