"""Triton kernels (public as :mod:`culaunch.triton`)."""

from culaunch._triton._native import NativeKernel, native

__all__ = ["NativeKernel", "native"]
