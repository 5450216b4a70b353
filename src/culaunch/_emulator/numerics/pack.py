"""Conversions of two registers to one: cvt to packed types, and cvt.pack."""

from __future__ import annotations

import numpy as np

from culaunch._emulator.numerics.convert import cvt
from culaunch._emulator.numerics.formats import PACKED, Bits, to_f64
from culaunch._emulator.numerics.octets import narrow_octets, pair_octets, to_powers


@np.errstate(all="ignore")
def cvt_pair(
    to: str,
    a: Bits,
    b: Bits,
    *,
    rounding: str = "rn",
    relu: bool = False,
    satfinite: bool = False,
) -> Bits:
    """Convert two f32 registers to one packed one: ``cvt.rn.f16x2.f32 d, a, b``.

    Parameters
    ----------
    to : {"f16x2", "bf16x2", "e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2", "ue8m0x2"}
        The packed type. Those of 8 bits and fewer always saturate to the largest finite number,
        but ``ue8m0x2`` only with `satfinite`.
    a, b : numpy.ndarray of uint32
        Converted to the upper, and to the lower, part of the result.
    rounding : {"rn", "rz", "rp"}, optional
        The rounding; ``rp`` only to ``ue8m0x2``.
    relu, satfinite : bool, optional
        As for `cvt`.

    Returns
    -------
    numpy.ndarray
        uint32, uint16 for the types of 6 and 8 bits, or uint8 for ``e2m1x2``.
    """
    if to in PACKED:
        upper, lower = (
            cvt(PACKED[to], "f32", x, rounding=rounding, relu=relu, satfinite=satfinite)
            for x in (a, b)
        )
        both: Bits = upper.astype(np.uint32) << np.uint32(16)
        return both | lower
    values = (to_f64("f32", x) for x in (a, b))
    if to == "ue8m0x2":
        upper, lower = (to_powers(x, up=rounding == "rp", satfinite=satfinite) for x in values)
    else:
        upper, lower = (narrow_octets(to, x, relu) for x in values)
    return pair_octets(to, upper, lower)


def cvt_pack(to: str, a: Bits, b: Bits, c: Bits | None = None) -> Bits:
    """Convert two s32 registers with saturation and pack them: ``cvt.pack.sat``.

    Parameters
    ----------
    to : {"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"}
        What both become.
    a, b : numpy.ndarray of uint32
        `b` becomes the lowest part of the result, `a` the next.
    c : numpy.ndarray of uint32, optional
        Shifted up by both parts' widths to fill the rest of the result.

    Returns
    -------
    numpy.ndarray of uint32
    """
    width = int(to[1:])
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if to[0] == "s" else (0, (1 << width) - 1)
    mask = np.uint32((1 << width) - 1)
    parts = [np.clip(x.view(np.int32), low, high).view(np.uint32) & mask for x in (a, b)]
    packed: Bits = (parts[0] << np.uint32(width)) | parts[1]
    return packed if c is None else packed | (c << np.uint32(2 * width))
