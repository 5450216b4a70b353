"""Triton kernels that the tests of bodies launch."""

import triton
import triton.language as tl

FACTOR = tl.constexpr(3)


@triton.jit
def add(x, y, out, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask) * factor + tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, value, mask=mask)


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})
@triton.jit
def tuned(x, out, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask)
    if EVEN:
        value = value * 2
    tl.store(out + offsets, value, mask=mask)


@triton.autotune(
    [triton.Config({"BLOCK": 64}, pre_hook=lambda args: None)],
    key=["n"],
)
@triton.jit
def hooked(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), n)


@triton.jit
def every_kind(
    out, pair, maybe, n, wide: tl.int64, half: tl.float16, f, flag, small: tl.int8,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The kind of each argument, as a row of numbers."""
    tl.store(out, pair[0])
    tl.store(out + 1, tl.load(pair[1]))
    if maybe is not None:
        tl.store(out + 2, tl.load(maybe))
    tl.store(out + 3, n)
    tl.store(out + 4, wide)
    tl.store(out + 5, half)
    tl.store(out + 6, f)
    if flag:
        tl.store(out + 7, BLOCK)
    tl.store(out + 8, small)


@triton.jit
def with_global(x, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, tl.load(x + offsets) * FACTOR)


@triton.jit
def move(a, b, factor):
    """Move what one descriptor shows to what another one shows."""
    block: tl.constexpr = a.block_shape
    m = tl.program_id(0) * block[0]
    n = tl.program_id(1) * block[1]
    b.store([m, n], a.load([m, n]) * factor)


@triton.jit
def with_scratch(x, out, rows, columns, BLOCK: tl.constexpr):
    """Copy tiles by a descriptor that the kernel makes, in scratch memory."""
    of = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    to = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    m, n = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    to.store([m, n], of.load([m, n]) + 1)
