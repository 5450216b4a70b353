"""Kernels of libraries in small: they reach around the view that they are given."""

import triton
import triton.language as tl


@triton.jit
def fill_rows(x, stride, B: tl.constexpr):
    tl.store(x + tl.program_id(0) * stride + tl.arange(0, B), -1)


@triton.jit
def last_of(x, o, n):
    i = tl.program_id(0)
    tl.store(o + i, tl.load(x + i * n + n - 1))
