"""Kernels that :mod:`random_lives` imports again for each life."""

import triton
import triton.language as tl

FACTOR = tl.constexpr(2)


@triton.jit
def times(value):
    return value * FACTOR


@triton.jit
def more(value):
    return value + 1


@triton.jit
def kernel(x, out, n, s, BLOCK: tl.constexpr, F: tl.constexpr = None, MODE: tl.constexpr = 0):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = times(tl.load(x + i, mask=i < n, other=0)) + s
    if F is not None:
        value = F(value)
    if MODE == 1:
        value = -value
    tl.store(out + i, value, mask=i < n)
