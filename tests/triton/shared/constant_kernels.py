"""Kernels of one constant, which any value may be."""

import triton
import triton.language as tl

MODE = tl.constexpr(3)


@triton.jit
def constant(x, V: tl.constexpr):
    tl.store(x, 1.0)


@triton.jit
def tuple_by_default(x, V: tl.constexpr = (5, 6)):
    tl.store(x, V[0])


@triton.jit
def constexpr_by_default(x, M: tl.constexpr = MODE):
    tl.store(x, M)
