"""Kernels that launch natively by themselves."""

import triton
import triton.language as tl

SCALE = tl.constexpr(2)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, times(tl.load(x + i, mask=i < n)), mask=i < n)


@triton.jit
def times(value):
    return value * SCALE
