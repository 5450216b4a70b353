"""Kernels whose pointers go through loops, branches, calls and casts."""

import triton
import triton.language as tl


@triton.jit
def loop(a, b, out, n, BLOCK: tl.constexpr):
    """The pointers are carried by a loop."""
    at = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    of_a = a + at
    for _ in range(n):
        sums += tl.load(of_a) * tl.load(b + at)
        of_a += BLOCK
    tl.store(out + at, sums)


@triton.jit
def branch(a, b, n, BLOCK: tl.constexpr):
    """It writes one or the other."""
    at = tl.arange(0, BLOCK)
    if n > 3:  # noqa: SIM108 - a branch, and not a selection
        to = a
    else:
        to = b
    tl.store(to + at, n)


@triton.jit
def loop_of_outputs(a, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    to = out
    for _ in range(n):
        tl.store(to + at, tl.load(a + at))
        to += BLOCK


@triton.jit
def chosen(a, b, c, n):
    tl.store(tl.where(n > 3, a, b), tl.load(c))


@triton.jit
def atomics(a, b):
    tl.atomic_add(a, tl.load(b))


@triton.jit(noinline=True)
def put(to, value):
    tl.store(to, value)


@triton.jit
def calls(a, b):
    put(a, tl.load(b))


@triton.jit
def casts(a, b):
    address = a.to(tl.int64)
    tl.store(address.to(tl.pointer_type(tl.float32)), tl.load(b))


@triton.jit
def swaps(a, b, n):
    x = a
    y = b
    while n > 0:
        z = x
        x = y
        y = z
        n -= 1
    tl.store(x, 1.0)
