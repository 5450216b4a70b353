"""Kernels for decorators, tuples and Gluon: what of them can be saved."""

import typing

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def accumulate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0))
    tl.atomic_add(out_ptr, total)


@triton.jit
def guarded(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))
    else:
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


SEVEN = tl.constexpr(7)


@triton.jit
def constants(out_ptr, V: tl.constexpr, W: tl.constexpr = SEVEN):
    if V is None:
        value = 1000
    elif V == tl.float16:  # noqa: SIM300
        value = 16
    else:
        value = V
    tl.store(out_ptr, value + W)


@triton.jit
def of_tuple(out_ptr, V: tl.constexpr):
    if len(V) == 0:
        tl.store(out_ptr, -1)
    elif len(V) == 1:
        tl.store(out_ptr, 100 + V[0])
    else:
        tl.store(out_ptr, V[0] * 10 + V[1])


class Pair(typing.NamedTuple):
    a: typing.Any
    b: typing.Any


class Swapped(typing.NamedTuple):
    b: typing.Any
    a: typing.Any


@triton.jit
def of_pair(out_ptr, pair):
    tl.store(out_ptr, pair.a * 10 + pair.b)


@gluon.jit
def of_gluon(x_ptr, out_ptr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    offsets = gl.arange(0, BLOCK, layout=layout)
    gl.store(out_ptr + offsets, gl.load(x_ptr + offsets) * 2)


@triton.jit
def maybe(out, h, n, USE: tl.constexpr, HALF: tl.constexpr, SIZE: tl.constexpr):
    if USE:
        tl.store(out, tl.load(h) + n + SIZE)


def tuned(hook, sizes=(64, 128)):
    """Return a kernel under an autotuner, with a configuration for each size of block."""
    configs = [triton.Config({"BLOCK": size}, pre_hook=hook) for size in sizes]
    return triton.autotune(configs, key=["n"])(accumulate)


@triton.jit
def of_type(out_ptr, V: tl.constexpr):
    tl.store(out_ptr, tl.full([], 3, V))


@triton.jit
def of_tensor_or_number(out, x, IS_TENSOR: tl.constexpr):
    if IS_TENSOR:
        tl.store(out, tl.load(x) + 1)
    else:
        tl.store(out, x)


@triton.jit
def of_default(x, out, n, m=2, k=3, BLOCK: tl.constexpr = 16, ODD: tl.constexpr = False):
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets, mask=offsets < n) + m + k, mask=offsets < n)


@triton.jit
def nine(a0, a1, a2, a3, a4, a5, a6, a7, a8):
    pass
