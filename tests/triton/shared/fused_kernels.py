"""A product and a difference, which differ in the last bits where they are one operation."""

import triton.language as tl


def squared_less(x, o, y, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i)
    tl.store(o + i, value * value - y)
