"""A kernel for one block, however many threads that has."""

import triton
import triton.language as tl


@triton.jit
def copy(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i))
