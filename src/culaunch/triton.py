"""Triton kernels: native launches, ahead-of-time compilation, and shipping without Triton."""

from __future__ import annotations

from culaunch._triton import (
    KernelSet,
    NativeKernel,
    compile,  # noqa: A004
    from_cache,
    from_compiled,
    native,
)

__all__ = ["KernelSet", "NativeKernel", "compile", "from_cache", "from_compiled", "native"]
