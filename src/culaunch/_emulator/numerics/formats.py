"""The meaning of a register's bits: the floating-point formats, flushing and canonical NaNs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Bits: TypeAlias = npt.NDArray[Any]  # unsigned integers, one lane per element
Floats: TypeAlias = npt.NDArray[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Format:
    """A binary floating-point format and the unsigned integers that carry it."""

    name: str
    """The PTX type, such as ``"f32"``."""
    carrier: np.dtype[Any]
    """The unsigned integer dtype of a register of this type."""
    precision: int
    """Significant bits, the implicit one included."""
    min_exponent: int
    """The exponent of the smallest normal number, as in ``2.0 ** min_exponent``."""
    # The bits of 1.0, of infinity, of the canonical NaN, of the sign, and of the largest finite
    # number.
    one: int
    infinity: int
    nan: int
    sign: int
    largest: int

    @property
    def magnitude(self) -> int:
        """Every bit but the sign."""
        return self.sign - 1


def _ieee(
    name: str, width: int, carrier_width: int, precision: int, nan: int, low: int = 0
) -> Format:
    # `low` zero bits follow the format's own ones in its carrier (tf32 in an f32 register).
    # The sign takes one bit and the fraction one less than the precision: the rest is the exponent.
    exponent_bits = width - precision
    bias = (1 << (exponent_bits - 1)) - 1
    unit = 1 << (precision - 1 + low)
    infinity = ((1 << exponent_bits) - 1) * unit
    return Format(
        name=name,
        carrier=np.dtype(f"u{carrier_width // 8}"),
        precision=precision,
        min_exponent=1 - bias,
        one=bias * unit,
        infinity=infinity,
        nan=nan,
        sign=1 << (width - 1 + low),
        largest=infinity - (1 << low),
    )


#: The canonical NaNs are those of the hardware: all ones but the sign up to single precision.
FORMATS = {
    "f16": _ieee("f16", 16, 16, 11, 0x7FFF),
    "bf16": _ieee("bf16", 16, 16, 8, 0x7FFF),
    "tf32": _ieee("tf32", 19, 32, 11, 0x7FFFFFFF, low=13),
    "f32": _ieee("f32", 32, 32, 24, 0x7FFFFFFF),
    "f64": _ieee("f64", 64, 64, 53, 0xFFF8000000000000),
}

PACKED = {"f16x2": "f16", "bf16x2": "bf16"}
# f32x2 has only sums and products.
PAIRS = {**PACKED, "f32x2": "f32"}


def to_f64(kind: str, bits: Bits) -> Floats:
    """Widen a floating-point register to float64 values; exact for every format."""
    if kind == "f32" or kind == "tf32":
        return bits.view(np.float32).astype(np.float64)
    if kind == "f64":
        return bits.view(np.float64)
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    if kind == "bf16":
        return bf16_to_f32(bits).astype(np.float64)
    raise unknown_kind(kind)


def bf16_to_f32(bits: Bits) -> Floats:
    """Widen bf16 bits to float32 values; exact."""
    wide: Floats = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return wide


def is_nan(fmt: Format, bits: Bits) -> Mask:
    """Tell which lanes hold a NaN."""
    mask: Mask = (bits & fmt.carrier.type(fmt.magnitude)) > fmt.carrier.type(fmt.infinity)
    return mask


def canonical(fmt: Format, bits: Bits) -> Bits:
    """Replace, in place, every NaN by the canonical one."""
    nan = is_nan(fmt, bits)
    if nan.any():
        bits[nan] = fmt.nan
    return bits


def flush(fmt: Format, bits: Bits) -> Bits:
    """Return the lanes with subnormals replaced by a zero of the same sign."""
    unit = fmt.carrier.type
    # A zero wraps around to the largest integer, so one comparison leaves out zeros too.
    below = (bits & unit(fmt.magnitude)) - unit(1)
    tiny = below < unit(_smallest_normal(fmt) - 1)
    if not tiny.any():
        return bits
    return np.where(tiny, bits & unit(fmt.sign), bits)


def saturate(fmt: Format, bits: Bits) -> Bits:
    """Clamp to [+0.0, 1.0]; NaN and everything with a sign become +0.0."""
    unit = fmt.carrier.type
    # Positive numbers have the order of their bits, and everything with a sign is above them.
    clamped: Bits = np.minimum(bits, unit(fmt.one))
    clamped[(bits > unit(fmt.infinity))] = 0  # negative, or a NaN of either sign
    return clamped


def relu(fmt: Format, bits: Bits) -> Bits:
    """Clamp negative lanes to +0.0; NaN becomes the canonical NaN."""
    negative = bits >= fmt.carrier.type(fmt.sign)
    nan = is_nan(fmt, bits)
    clamped: Bits = np.where(negative, fmt.carrier.type(0), bits)
    clamped[nan] = fmt.nan
    return clamped


def halves(bits: Bits, half: npt.DTypeLike = np.uint16) -> Bits:
    """View lanes as twice as many of half the width (16 bits by default), the low half first."""
    contiguous: Bits = bits if bits.flags.c_contiguous else bits.copy()
    return contiguous.view(half)


def unknown_kind(kind: str) -> ValueError:
    """Make the error for a type that an operation does not have."""
    return ValueError(f"kind must be a PTX type that this operation has (got {kind!r})")


def _smallest_normal(fmt: Format) -> int:
    exponent_unit: int = fmt.infinity & -fmt.infinity
    return exponent_unit
