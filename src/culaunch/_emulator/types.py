"""PTX's fundamental types and the NumPy types that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

# A register: one element for each lane of a group, or a single one for all of them.
Lanes = np.ndarray[Any, np.dtype[Any]]

BITS: dict[int, np.dtype[Any]] = {
    1: np.dtype("u1"),
    2: np.dtype("u2"),
    4: np.dtype("u4"),
    8: np.dtype("u8"),
}

_DTYPES: dict[str, np.dtype[Any]] = {
    "pred": np.dtype(bool),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    # These have no NumPy arithmetic that rounds as PTX does: the numerics take them as bits.
    **dict.fromkeys(("f16", "bf16", "e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2"), np.dtype("u2")),
    "ue8m0x2": np.dtype("u2"),
    "e2m1x2": np.dtype("u1"),
    **dict.fromkeys(("f16x2", "bf16x2", "tf32"), np.dtype("u4")),
    "f32x2": np.dtype("u8"),
    **{f"s{8 * size}": np.dtype(f"i{size}") for size in BITS},
    **{f"u{8 * size}": dtype for size, dtype in BITS.items()},
    **{f"b{8 * size}": dtype for size, dtype in BITS.items()},
    # A 128-bit register is a row of two words; see lane_shape in the decoder.
    "b128": np.dtype("u8"),
}


def lane_dtype(ptx_type: str) -> np.dtype[Any]:
    """Return the NumPy type of a lane of `ptx_type`; raise KeyError for an unknown one."""
    return _DTYPES[ptx_type]


def is_type(name: str) -> bool:
    """Tell whether `name` is a type that a register or an instruction can have."""
    return name in _DTYPES


def size_of(ptx_type: str) -> int:
    """Return the bytes that a value of `ptx_type` takes in memory."""
    return 16 if ptx_type == "b128" else _DTYPES[ptx_type].itemsize


def unsigned(ptx_type: str) -> np.dtype[Any]:
    """Return the unsigned NumPy type as wide as `ptx_type`."""
    return BITS[_DTYPES[ptx_type].itemsize]


def is_signed(ptx_type: str) -> bool:
    """Tell whether `ptx_type` is a signed integer."""
    return ptx_type[0] == "s"


def is_integer(ptx_type: str) -> bool:
    """Tell whether `ptx_type` is an integer of any width, or bits without a type."""
    return ptx_type[0] in "sub" and ptx_type[1:].isdigit()


def is_float(ptx_type: str) -> bool:
    """Tell whether `ptx_type` is a floating-point type."""
    return ptx_type[0] == "f" or ptx_type.startswith(("bf", "tf", "e2m", "e3m", "e4", "e5", "ue8"))
