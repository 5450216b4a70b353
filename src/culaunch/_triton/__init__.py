"""Triton kernels (public as :mod:`culaunch.triton`)."""

from culaunch._core import set_upcalls
from culaunch._triton import _upcalls
from culaunch._triton._aot import compile  # noqa: A004
from culaunch._triton._existing import from_cache, from_compiled
from culaunch._triton._native import NativeKernel, native
from culaunch._triton._set import KernelSet

__all__ = ["KernelSet", "NativeKernel", "compile", "from_cache", "from_compiled", "native"]

set_upcalls(triton=_upcalls)
