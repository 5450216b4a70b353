"""NumPy's types and values, in C."""

from __future__ import annotations

from typing import Any

import numpy as np

# The statement that leaves a launch to the other engine.
ABANDON = "return ABANDONED;"

_FLOATS = {2: "u16", 4: "f32", 8: "f64"}


def c_type(dtype: np.dtype[Any]) -> str:
    """Return the C type of a value; a half is kept as its bits."""
    if dtype.kind == "f":
        return _FLOATS[dtype.itemsize]
    if dtype.kind == "b":
        return "_Bool"
    return f"{'i' if dtype.kind == 'i' else 'u'}{8 * dtype.itemsize}"


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """Return a constant of type `dtype`, exactly."""
    bits = int.from_bytes(np.array(value).astype(dtype).tobytes(), "little")
    if dtype.kind == "f":
        return bitcast(f"{bits:#x}ull", np.dtype(f"u{dtype.itemsize}"), dtype)
    return f"(({c_type(dtype)}){bits:#x}ull)"


def bitcast(expression: str, have: np.dtype[Any], want: np.dtype[Any]) -> str:
    """Return the same bits as another type of that size."""
    if have == want:
        return expression
    if _is_wide_float(want) and not _is_wide_float(have):
        return f"{c_type(want)}_of({expression})"
    if _is_wide_float(have) and not _is_wide_float(want):
        return f"(({c_type(want)})bits_of_{c_type(have)}({expression}))"
    return f"(({c_type(want)})({expression}))"


def convert(expression: str, have: np.dtype[Any], want: np.dtype[Any]) -> str:
    """Return a value as ``astype`` converts it."""
    if have == want:
        return expression
    if want.kind == "b":
        return f"((u8)(({expression}) != 0))"
    if have == np.float16:
        expression, have = f"half_to_single({expression})", np.dtype("f4")
        return convert(expression, have, want)
    if want == np.float16:
        return f"double_to_half((f64)({expression}))"
    if have.kind == "f" and want.kind in "iu":
        # In C, the result for a number that does not fit is unspecified, and is not used.
        return f"whole_{c_type(want)}((f64)({expression}))"
    return f"(({c_type(want)})({expression}))"


def _is_wide_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" and dtype.itemsize > 2
