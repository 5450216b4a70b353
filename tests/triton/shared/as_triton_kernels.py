"""Kernels whose launches are compared with what Triton's own ``run`` does."""

import triton
import triton.language as tl

FACTOR = tl.constexpr(2)


@triton.jit
def put(out, v):
    tl.store(out, v)


@triton.jit
def put_half(out, v: tl.float16):
    tl.store(out, v.to(tl.int64))


@triton.jit
def sized(out, v, SIZE: tl.constexpr, EVEN: tl.constexpr):
    tl.store(out, v + SIZE + EVEN)


@triton.jit
def three():
    return 3


@triton.jit
def asks(out, FUNCTION: tl.constexpr):
    tl.store(out, FUNCTION())


@triton.jit
def times(out, v):
    tl.store(out, v * FACTOR)


@triton.jit
def times_first(out, v):
    tl.store(out, v * FACTOR[0])


@tl.constexpr
def thrice(value):
    """As libraries write what they calculate with types and constants."""
    return 3 * value


@triton.jit
def times_by_function(out, v, N: tl.constexpr):
    tl.store(out, v * thrice(N))


@triton.jit
def put_element(out, x, i):
    tl.store(out, tl.load(x + i))
