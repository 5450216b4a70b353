"""A kernel that says what its decorators chose."""

import triton
import triton.language as tl


@triton.jit
def say(out, x, n, scale, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    tl.store(out + 0, n)
    tl.store(out + 1, A)
    tl.store(out + 2, B)
    tl.store(out + 3, C)
    tl.store(out + 4, D)


@triton.jit
def say_more(out, n, twice, A: tl.constexpr):
    tl.store(out + 0, n)
    tl.store(out + 1, twice)
    tl.store(out + 2, A)
