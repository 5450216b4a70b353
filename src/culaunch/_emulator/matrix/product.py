"""Multiplying and accumulating matrices of element bits.

Rounding
--------
f16, bf16, tf32, e4m3, e5m2
    Products are exact. Their sum and the accumulator are added in float64, in an order of NumPy's
    choice. The result is rounded once, to nearest, to f32 or f16. It is within half a unit in the
    last place plus (k + 1) 2**-53 (|c| + sum |a b|) of the exact one. The hardware aligns the
    addends to the largest of them, keeps 24 to 26 bits and cuts off the rest. It does so for blocks
    of 4, 8 or 16 products at a time. Published measurements bound its distance from the exact
    result by (k + 4) 2**-23 max(|c|, |a b|...). So the two differ by that plus half a unit in the
    last place. Low bits of a tf32 register are ignored.
f64
    One correctly rounded fused multiply-add after the other, in the order of k.
Integers, b1
    Exact; sums wrap around at 32 bits, or are clamped with ``satfinite``.

NaN results are canonical.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from culaunch._emulator import numerics
from culaunch._emulator.numerics.formats import FORMATS, canonical

if TYPE_CHECKING:
    from culaunch._emulator.matrix.elements import Elements

_Matrix = npt.NDArray[Any]


@np.errstate(all="ignore")
def multiply_add(
    types: tuple[str, str, str, str],
    a: Elements,
    b: Elements,
    c: Elements,
    *,
    satfinite: bool = False,
    operation: str = "and",
    rounding: str = "rn",
    scales: tuple[_Matrix, _Matrix] | None = None,
) -> Elements:
    """Return the bits of A B + C.

    Parameters
    ----------
    types : tuple of str
        The types of D, A, B and C.
    a, b, c : numpy.ndarray
        Element bits, of shapes (..., m, k), (..., k, n) and (..., m, n).
    satfinite : bool, optional
        Clamp 32-bit integers instead of wrapping around.
    operation : {"and", "xor"}, optional
        What multiplies single bits.
    rounding : {"rn", "rz", "rm", "rp"}, optional
        For f64.
    scales : tuple of numpy.ndarray, optional
        Float64 factors of the elements of A and of B.

    Returns
    -------
    numpy.ndarray
        Bits of D, of the shape of `c`.
    """
    to, a_kind, b_kind, c_kind = types
    if a_kind == "f64":
        total = c
        for k in range(a.shape[-1]):
            left, right = a[..., :, k, None], b[..., None, k, :]
            total = numerics.fma("f64", left, right, total, rounding=rounding)
        return total
    left, right = values_of(a_kind, a), values_of(b_kind, b)
    if scales is not None:
        left, right = left * scales[0], right * scales[1]
    # NumPy multiplies matrices of float64 by BLAS, for all warps together.
    product = np.matmul(left, right)
    if c_kind == "s32":
        if a_kind == "b1" and operation == "xor":
            # popc(x ^ y) = popc(x) + popc(y) - 2 popc(x & y)
            product = left.sum(-1)[..., :, None] + right.sum(-2)[..., None, :] - 2 * product
        # A few hundred products of at most 16 bits: float64 holds their sum exactly, and int64 the
        # whole one.
        total = c.view(np.int32) + product.astype(np.int64)
        if satfinite:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        bits: Elements = total.astype(np.int32).view(np.uint32)
        return bits
    total = numerics.cvt(to, "f64", product + values_of(c_kind, c), rounding="rn")
    return canonical(FORMATS[to], total)  # a conversion keeps the payloads of NaNs


# The bits of the exponent and of the mantissa of floats without infinities and NaNs.
_SMALL = {"e2m3": (2, 3), "e3m2": (3, 2), "e2m1": (2, 1)}


@functools.cache
def _small(exponent: int, mantissa: int) -> _Matrix:
    """Return the value of each number of these bits."""
    bits = np.arange(2 << exponent + mantissa)
    power, part = bits >> mantissa & ((1 << exponent) - 1), bits & ((1 << mantissa) - 1)
    whole = np.where(power > 0, part + (1 << mantissa), part)
    size = np.ldexp(
        whole.astype(np.float64), np.maximum(power, 1) - (1 << exponent - 1) + 1 - mantissa
    )
    signed: _Matrix = np.where(bits >> exponent + mantissa, -size, size)
    return signed


def values_of(kind: str, bits: Elements) -> _Matrix:
    # float64 holds every element, product and integer sum exactly.
    values: _Matrix = bits
    if kind in ("f16", "bf16", "f32"):
        return numerics.cvt("f64", kind, bits).view(np.float64)
    if kind == "tf32":
        # The hardware ignores the 13 lowest bits of the register.
        values = (bits & np.uint32(0xFFFFE000)).view(np.float32)
    elif kind in ("e4m3", "ue4m3", "e5m2"):
        pairs = np.ascontiguousarray(bits).view(np.uint16)
        halves = numerics.cvt("f16x2", kind.removeprefix("u") + "x2", pairs).view(np.float16)
        values = halves.reshape(bits.shape)
    elif kind in _SMALL:
        values = _small(*_SMALL[kind])[bits]
    elif kind == "ue8m0":
        # 2 ** (bits - 127); the last one is NaN.
        values = np.where(bits == 255, np.nan, np.ldexp(1.0, bits.astype(np.int32) - 127))
    elif kind == "s8":
        values = bits.view(np.int8)
    elif kind == "s4":
        values = (bits ^ np.uint8(8)).astype(np.int8) - np.int8(8)
    return values.astype(np.float64)
