"""Operations on signs and order: min, max, abs, neg, copysign."""

from __future__ import annotations

import numpy as np

from culaunch._emulator.numerics.formats import (
    FORMATS,
    PACKED,
    Bits,
    Format,
    flush,
    halves,
    is_nan,
    unknown_kind,
)

_QUIET = np.uint64(0x0008000000000000)


def minimum(
    kind: str,
    a: Bits,
    b: Bits,
    *,
    nan: bool = False,
    xorsign_abs: bool = False,
    ftz: bool = False,
) -> Bits:
    """Return the smaller operand; -0 is smaller than +0.

    Parameters
    ----------
    kind : {"f32", "f64", "f16", "bf16", "f16x2", "bf16x2"}
        The PTX type.
    a, b : numpy.ndarray
        Register bits as wide as `kind`; they broadcast.
    nan : bool, optional
        ``.NaN``: the result is NaN where either operand is. Otherwise it is the other operand,
        and NaN only if both are.
    xorsign_abs : bool, optional
        ``.xorsign.abs``: compare magnitudes; the sign is the exclusive or of both signs.
    ftz : bool, optional
        Replace subnormals by zeros of the same sign.

    Returns
    -------
    numpy.ndarray
        Bits. NaN is canonical; in f64 it is the second operand, quieted, as sm_80's code has it.
    """
    return _extremum(kind, a, b, False, nan, xorsign_abs, ftz)


def maximum(
    kind: str,
    a: Bits,
    b: Bits,
    *,
    nan: bool = False,
    xorsign_abs: bool = False,
    ftz: bool = False,
) -> Bits:
    """Return the larger operand; parameters are those of `minimum`."""
    return _extremum(kind, a, b, True, nan, xorsign_abs, ftz)


def negate(kind: str, a: Bits, *, ftz: bool = False) -> Bits:
    """Change the sign.

    NaN becomes the canonical one, for the hardware adds zero; in f64 it is quieted and keeps its
    sign.
    """
    return _signs(kind, a, "neg", ftz)


def absolute(kind: str, a: Bits, *, ftz: bool = False) -> Bits:
    """Clear the sign; NaN as in `negate`."""
    return _signs(kind, a, "abs", ftz)


def copysign(kind: str, a: Bits, b: Bits) -> Bits:
    """Return `b` with the sign of `a`: the order of PTX, not of C. Bits only, NaN too."""
    fmt = FORMATS[kind]
    sign = fmt.carrier.type(fmt.sign)
    signed: Bits = (a.view(fmt.carrier) & sign) | (b.view(fmt.carrier) & ~sign)
    return signed


def _extremum(
    kind: str, a: Bits, b: Bits, largest: bool, nan: bool, xorsign_abs: bool, ftz: bool
) -> Bits:
    if kind in PACKED:
        low, high = (halves(x) for x in np.broadcast_arrays(a, b))
        result = _extremum(PACKED[kind], low, high, largest, nan, xorsign_abs, ftz)
        return result.view(np.uint32)
    if kind not in FORMATS or kind == "tf32":
        raise unknown_kind(kind)
    fmt = FORMATS[kind]
    a, b = a.view(fmt.carrier), b.view(fmt.carrier)
    if ftz:
        a, b = flush(fmt, a), flush(fmt, b)
    # Read the signs before taking the magnitudes, which have none.
    signs = (a ^ b) & fmt.carrier.type(fmt.sign)
    if xorsign_abs:
        magnitude = fmt.carrier.type(fmt.magnitude)
        a, b = a & magnitude, b & magnitude
    # By integers: they order the two zeros, which a comparison of floats finds equal.
    first = _ordered(fmt, a) < _ordered(fmt, b)
    result = np.where(first ^ largest, a, b)
    a_nan, b_nan = is_nan(fmt, a), is_nan(fmt, b)
    either = a_nan | b_nan
    if not either.any():
        return result | signs if xorsign_abs else result
    both = either if nan else a_nan & b_nan
    result = np.where(a_nan, b, np.where(b_nan, a, result))
    if xorsign_abs:
        result = result | signs
    if kind == "f64" and not nan:
        return np.where(both, b.view(np.uint64) | _QUIET, result)
    return np.where(both, fmt.carrier.type(fmt.nan), result)


def _signs(kind: str, a: Bits, operation: str, ftz: bool) -> Bits:
    if kind in PACKED:
        return _signs(PACKED[kind], halves(a), operation, ftz).view(np.uint32)
    if kind not in FORMATS or kind == "tf32":
        raise unknown_kind(kind)
    fmt = FORMATS[kind]
    a = a.view(fmt.carrier)
    if ftz:
        a = flush(fmt, a)
    unit = fmt.carrier.type
    result: Bits = a ^ unit(fmt.sign) if operation == "neg" else a & unit(fmt.magnitude)
    nan = is_nan(fmt, a)
    if nan.any():
        result[nan] = a[nan] | _QUIET if kind == "f64" else fmt.nan
    return result


def _ordered(fmt: Format, bits: Bits) -> Bits:
    # Integers in the order of the numbers: the magnitude of negative ones is turned around.
    signed = bits.view(f"i{fmt.carrier.itemsize}")
    width = signed.dtype.type(8 * fmt.carrier.itemsize - 1)
    key: Bits = signed ^ ((signed >> width) & signed.dtype.type(fmt.magnitude))
    return key
