"""Triton kernels: native launches, ahead-of-time compilation, and shipping without Triton."""

from __future__ import annotations

from culaunch._triton import NativeKernel, native

__all__ = ["NativeKernel", "native"]
