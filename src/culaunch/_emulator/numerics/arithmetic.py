"""add, sub, mul, fma, div, rcp and sqrt of PTX, correctly rounded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.numerics import double, single
from culaunch._emulator.numerics.formats import (
    FORMATS,
    PAIRS,
    Bits,
    flush,
    halves,
    saturate,
    unknown_kind,
)
from culaunch._emulator.numerics.formats import relu as _relu

if TYPE_CHECKING:
    from collections.abc import Callable

# Temporary arrays of 32 KiB stay in the cache, and the C library keeps their memory.
_BLOCK = 4096


def add(
    kind: str, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
) -> Bits:
    """Add.

    Parameters
    ----------
    kind : {"f32", "f64", "f16", "bf16", "f16x2", "bf16x2", "f32x2"}
        The PTX type.
    a, b : numpy.ndarray
        Register bits: uint32, uint64 or uint16, as wide as `kind`; they broadcast.
    rounding : {"rn", "rz", "rm", "rp"}, optional
        To nearest even, to zero, down or up.
    ftz : bool, optional
        Replace subnormal operands and results by zeros of the same sign.
    sat : bool, optional
        Clamp the result to [0, 1]; NaN becomes +0.

    Returns
    -------
    numpy.ndarray
        Bits of the same dtype.
    """
    return _apply(kind, (a, b), _add, rounding, ftz=ftz, sat=sat)


def sub(
    kind: str, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
) -> Bits:
    """Subtract; parameters are those of `add`."""
    return _apply(kind, (a, b), _sub, rounding, ftz=ftz, sat=sat)


def mul(
    kind: str, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False, sat: bool = False
) -> Bits:
    """Multiply; parameters are those of `add`."""
    return _apply(kind, (a, b), _mul, rounding, ftz=ftz, sat=sat)


def fma(
    kind: str,
    a: Bits,
    b: Bits,
    c: Bits,
    *,
    rounding: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> Bits:
    """Multiply `a` and `b`, add `c`, and round once; parameters are those of `add`.

    With `relu` negative results become +0 and NaN the canonical NaN.
    """
    return _apply(kind, (a, b, c), _fma, rounding, ftz=ftz, sat=sat, clamp=relu)


def div(kind: str, a: Bits, b: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
    """Divide, for f32 and f64; parameters are those of `add`."""
    return _apply(kind, (a, b), _div, rounding, ftz=ftz)


def rcp(kind: str, a: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
    """Return 1 / `a`, for f32 and f64; parameters are those of `add`."""
    return _apply(kind, (a,), _rcp, rounding, ftz=ftz)


def sqrt(kind: str, a: Bits, *, rounding: str = "rn", ftz: bool = False) -> Bits:
    """Return the square root, for f32 and f64; parameters are those of `add`."""
    return _apply(kind, (a,), _sqrt, rounding, ftz=ftz)


@np.errstate(all="ignore")
def _apply(
    kind: str,
    operands: tuple[Bits, ...],
    operation: Callable[..., Bits],
    rounding: str,
    *,
    ftz: bool = False,
    sat: bool = False,
    clamp: bool = False,
) -> Bits:
    if kind in PAIRS and operation in _OF_PAIRS:
        half = FORMATS[PAIRS[kind]]
        packed = tuple(halves(x, half.carrier) for x in np.broadcast_arrays(*operands))
        result = _apply(half.name, packed, operation, rounding, ftz=ftz, sat=sat, clamp=clamp)
        return result.view(f"u{2 * half.carrier.itemsize}")
    if kind not in FORMATS or kind == "tf32":
        raise unknown_kind(kind)
    fmt = FORMATS[kind]
    operands = tuple(x.view(fmt.carrier) for x in operands)
    if ftz:
        operands = tuple(flush(fmt, x) for x in operands)
    # One or two NumPy operations: nothing is gained by cutting those into blocks.
    if rounding == "rn" and (kind == "f32" or (kind == "f64" and operation is not _fma)):
        result = operation(kind, *operands, rounding)
    else:
        result = _in_blocks(lambda *lanes: operation(kind, *lanes, rounding), operands)
    if ftz:
        result = flush(fmt, result)
    if sat:
        result = saturate(fmt, result)
    if clamp:
        result = _relu(fmt, result)
    return result


def _in_blocks(operation: Callable[..., Bits], operands: tuple[Bits, ...]) -> Bits:
    # Operations of many steps run two to three times as fast on lanes that stay in the cache.
    shape = np.broadcast_shapes(*(x.shape for x in operands))
    count = math.prod(shape)
    if count <= _BLOCK:
        return operation(*operands)
    lanes = [np.broadcast_to(x, shape).reshape(-1) for x in operands]
    result = np.empty(count, operands[0].dtype)
    for start in range(0, count, _BLOCK):
        part = slice(start, start + _BLOCK)
        result[part] = operation(*(x[part] for x in lanes))
    return result.reshape(shape)


def _add(kind: str, a: Bits, b: Bits, rounding: str) -> Bits:
    return double.add(a, b, rounding) if kind == "f64" else single.add(kind, a, b, rounding)


def _sub(kind: str, a: Bits, b: Bits, rounding: str) -> Bits:
    if kind == "f64":
        return double.sub(a, b, rounding)
    fmt = FORMATS[kind]
    # Subtracting is adding with the other sign; the sign of a NaN does not show, since it becomes
    # the canonical one.
    return single.add(kind, a, b ^ fmt.carrier.type(fmt.sign), rounding)


def _mul(kind: str, a: Bits, b: Bits, rounding: str) -> Bits:
    return double.mul(a, b, rounding) if kind == "f64" else single.mul(kind, a, b, rounding)


def _fma(kind: str, a: Bits, b: Bits, c: Bits, rounding: str) -> Bits:
    if kind == "f64":
        return double.fma(a, b, c, rounding)
    return single.fma(kind, a, b, c, rounding)


_OF_PAIRS = (_add, _sub, _mul, _fma)


def _div(kind: str, a: Bits, b: Bits, rounding: str) -> Bits:
    if kind == "f64":
        return double.div(a, b, rounding)
    if kind == "f32":
        return single.div(a, b, rounding)
    raise unknown_kind(kind)


def _rcp(kind: str, a: Bits, rounding: str) -> Bits:
    fmt = FORMATS[kind]
    # Correctly rounded, 1 / a is a division like others.
    return _div(kind, np.full(1, fmt.one, fmt.carrier), a, rounding)


def _sqrt(kind: str, a: Bits, rounding: str) -> Bits:
    if kind == "f64":
        return double.sqrt(a, rounding)
    if kind == "f32":
        return single.sqrt(a, rounding)
    raise unknown_kind(kind)
