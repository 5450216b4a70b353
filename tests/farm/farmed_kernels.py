"""A kernel of Triton and a function that launches it; workers import them by name."""

import triton
import triton.language as tl

import culaunch as cl


@triton.jit
def double(y, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def tuned(y, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) * 3, at < n)


@triton.jit
def wrong(y, BLOCK: tl.constexpr):
    tl.store(y, tl.no_such_thing(BLOCK))


@cl.function
def sized(x: cl.Array("float32 | float16", "n"), limit: int):
    cl.check(x.shape[0] > limit, "x is too short")
    return cl.empty_like(x)
