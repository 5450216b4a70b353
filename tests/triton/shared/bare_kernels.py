"""Kernels that nobody compiles: what their decorators hand to them is all that matters."""

import triton.language as tl


def plain(x, y, n, m, s, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    pass


def defaults(
    x,
    y,
    n,
    m=5,
    s=0.5,
    A: tl.constexpr = 3,
    B: tl.constexpr = None,
    C: tl.constexpr = 0,
    D: tl.constexpr = 0,
):
    pass


def typed(
    x,
    y,
    n: tl.int64,
    m,
    s,
    A: tl.constexpr,
    B: tl.constexpr,
    C: tl.constexpr = 2,
    D: tl.constexpr = 1,
):
    pass
