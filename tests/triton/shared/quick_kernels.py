"""A kernel with every kind of argument that the quick path knows."""

import triton
import triton.language as tl


@triton.jit
def mixed(out, x, n, f=0.5, flag=True, maybe=None, BLOCK: tl.constexpr = 64):
    offsets = tl.arange(0, 32)
    value = tl.load(x + offsets).to(tl.float32) + n + f
    if maybe is not None:
        value += tl.load(maybe + offsets)
    if flag:
        value += BLOCK
    tl.store(out + offsets, value.to(out.dtype.element_ty))


@triton.jit
def two_numbers(x, n, m):
    tl.store(x, n * 1000 + m)


@triton.jit
def with_block(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), n)


@triton.jit
def add_to(x, y):
    offsets = tl.arange(0, 16)
    tl.store(x + offsets, tl.load(x + offsets) + tl.load(y + offsets))


@triton.jit
def many(x, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16, n17, n18,
         n19, last):  # fmt: skip
    tl.store(x, n0 + n1 + n2 + n3 + n4 + n5 + n6 + n7 + n8 + n9)
    tl.store(x + 1, n10 + n11 + n12 + n13 + n14 + n15 + n16 + n17 + n18 + n19 + last)


@triton.jit
def annotated(x, small: "i32", large: "u64"):  # noqa: F821 - Triton's names of types
    tl.store(x, small + large)
