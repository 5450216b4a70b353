"""Comparisons of set and setp, and testp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.numerics.formats import (
    FORMATS,
    PACKED,
    Bits,
    Mask,
    bf16_to_f32,
    flush,
    halves,
    unknown_kind,
)

if TYPE_CHECKING:
    from collections.abc import Callable

COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
# An unordered comparison is the negation of the opposite ordered one.
_UNORDERED = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}


@np.errstate(all="ignore")
def compare(operator: str, kind: str, a: Bits, b: Bits, *, ftz: bool = False) -> Mask:
    """Compare lanes.

    Parameters
    ----------
    operator : str
        ``eq ne lt le gt ge``, for unsigned integers also ``lo ls hi hs``, for floating point also
        ``equ neu ltu leu gtu geu num nan``. Like the other plain operators, ``ne`` is false when an
        operand is NaN.
    kind : str
        The PTX type: ``b16`` to ``b64``, ``s``, ``u``, ``f16``, ``bf16``, ``f32``, ``f64``,
        ``f16x2``, ``bf16x2``.
    a, b : numpy.ndarray
        Unsigned integers as wide as `kind`; they broadcast.
    ftz : bool, optional
        Compare subnormals as zeros (f32, f16 and f16x2).

    Returns
    -------
    numpy.ndarray of bool
        One per lane. Packed types add a last axis of length two: the low and the high half.
    """
    if kind in PACKED:
        low, high = np.broadcast_arrays(a, b)
        both = compare(operator, PACKED[kind], halves(low), halves(high), ftz=ftz)
        return both.reshape((*low.shape, 2))
    if kind in FORMATS:
        return _compare_floats(operator, kind, a, b, ftz)
    if kind[0] not in "bsu":
        raise unknown_kind(kind)
    dtype = f"{'i' if kind[0] == 's' else 'u'}{a.dtype.itemsize}"
    a, b = a.view(dtype), b.view(dtype)
    result: Mask = COMPARISONS[UNSIGNED.get(operator, operator)](a, b)
    return result


@np.errstate(all="ignore")
def testp(kind: str, test: str, a: Bits) -> Mask:
    """Test a property of floating-point lanes.

    Parameters
    ----------
    kind : {"f32", "f64"}
        The PTX type.
    test : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}
        The property. Zeros count as normal numbers, as the ISA says.
    a : numpy.ndarray
        Bits.

    Returns
    -------
    numpy.ndarray of bool
    """
    fmt = FORMATS[kind]
    magnitude = a.view(fmt.carrier) & fmt.carrier.type(fmt.magnitude)
    infinity = fmt.carrier.type(fmt.infinity)
    # The lowest bit of the exponent field: the smallest normal number.
    normal = fmt.carrier.type(fmt.infinity & -fmt.infinity)
    tests: dict[str, Callable[[], Any]] = {
        "finite": lambda: magnitude < infinity,
        "infinite": lambda: magnitude == infinity,
        "number": lambda: magnitude <= infinity,
        "notanumber": lambda: magnitude > infinity,
        "normal": lambda: (magnitude == 0) | ((magnitude >= normal) & (magnitude < infinity)),
        "subnormal": lambda: (magnitude < normal) & (magnitude > 0),
    }
    result: Mask = tests[test]()
    return result


def _compare_floats(operator: str, kind: str, a: Bits, b: Bits, ftz: bool) -> Mask:
    carrier = FORMATS[kind].carrier
    a, b = a.view(carrier), b.view(carrier)
    if ftz:
        a, b = flush(FORMATS[kind], a), flush(FORMATS[kind], b)
    if kind == "bf16":
        # NumPy has no bf16; every one is a float32.
        x, y = bf16_to_f32(a), bf16_to_f32(b)
    else:
        x, y = (v.view(f"f{v.dtype.itemsize}") for v in (a, b))
    result: Mask
    if operator in _UNORDERED:
        if operator == "equ":
            # Not less and not greater: equal, or not comparable.
            result = ~((x < y) | (x > y))
        elif operator == "neu":
            result = x != y
        else:
            result = ~COMPARISONS[_UNORDERED[operator]](x, y)
    elif operator == "ne":
        result = (x < y) | (x > y)
    elif operator in ("num", "nan"):
        nan = np.isnan(x) | np.isnan(y)
        result = nan if operator == "nan" else ~nan
    else:
        result = COMPARISONS[operator](x, y)
    return result
