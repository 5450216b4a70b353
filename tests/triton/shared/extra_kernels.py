"""Kernels that the tutorials do not have: clusters, every kind of argument, a global."""

import triton
import triton.language as tl

FACTOR = tl.constexpr(2)


@triton.jit
def clustered(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * 2, mask=offsets < n)


@triton.jit
def every_kind(out, pair, n, maybe, big, wide: tl.int64, f: tl.float64, flag, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.load(pair[1] + offsets).to(tl.float64) * pair[0]
    value += n
    if maybe is not None:
        value += tl.load(maybe + offsets)
    value += big
    value += wide
    value += f
    if flag:
        value = -value
    tl.store(out + offsets, value)


@triton.jit
def with_global(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) * FACTOR)


@triton.jit
def nothing():
    pass
