"""Kernels with every kind of parameter; they are bound and specialized, not compiled."""

import triton
import triton.language as tl


@triton.jit
def plain(a, b, c, d, e):
    pass


@triton.jit
def annotated(p: "*fp32", q: "*ki8", n: tl.int64, m: "u16", f: tl.float64, h: "fp16", g: "i1", a):  # noqa: F722, F821
    pass


@triton.jit
def constants(
    a, N, BLOCK: tl.constexpr, b=3, FLAG: tl.constexpr = None, TYPE: tl.constexpr = tl.float32
):
    pass


@triton.jit(do_not_specialize=["a", 1], do_not_specialize_on_alignment=["c"])
def unspecialized(a, b, c, d: "const", n: tl.int32):  # noqa: F821
    pass


KERNELS = (plain, annotated, constants, unspecialized)
