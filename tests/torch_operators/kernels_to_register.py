"""Triton kernels that the tests make operators of."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask) * factor + tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, value, mask=mask)


@triton.jit
def typed(x, out, n: "i32", BLOCK: tl.constexpr):  # noqa: F821
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) * 2, mask=mask)


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def tuned(x, out, n: "i32", BLOCK: tl.constexpr):  # noqa: F821
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) * 3, mask=mask)
