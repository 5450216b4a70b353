"""Traced Python functions, and C++ text, to fused elementwise kernels."""

from culaunch._core import set_upcalls
from culaunch._elementwise import upcalls

set_upcalls(elementwise=upcalls)
