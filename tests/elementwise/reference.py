"""NumPy's answers for the elementwise functions, computed wide, and how far an answer may be."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

# The array API's names that NumPy does not have, or has otherwise.
SPECIAL = {
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "bitwise_invert": np.invert,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "pow": np.power,
    "round": np.round,
    "reciprocal": lambda x: 1 / x,
    "log2": lambda x: np.log(x) / np.log(2) if np.iscomplexobj(x) else np.log2(x),
    "log10": lambda x: np.log(x) / np.log(10) if np.iscomplexobj(x) else np.log10(x),
}


def reference(name, *args):
    """Compute a function with NumPy, quietly."""
    function = SPECIAL.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        return function(*args)


def apart(got, wanted, dtype):
    """Return the distance in units in the last place of the wanted number, the greatest."""
    got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    info = ml_dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        narrow = wanted.astype(dtype).astype(np.float64)
        same |= np.isinf(narrow) & (got == narrow)
        exponent = np.maximum(np.floor(np.log2(np.abs(wanted))), float(np.log2(float(info.tiny))))
        exponent = np.where(wanted == 0, float(np.log2(float(info.tiny))), exponent)
        unit = np.exp2(exponent) * float(info.eps)
        distance = np.abs(got - wanted) / unit
    distance = np.where(same, 0, distance)
    return float(np.max(np.where(np.isnan(distance), np.inf, distance), initial=0))
