"""The mathematics library and arithmetic of every format."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from corpus._case import Case, from_cuda

_MATH = partial(Case, ptx=from_cuda("math.cu"))
_erf, _gamma = np.vectorize(math.erf), np.vectorize(math.lgamma)


def _float_functions(a: list[Any]) -> dict[int, np.ndarray]:
    x = a[0]
    v, m = x.astype(np.float64), np.abs(x).astype(np.float64)
    columns = [
        np.sin(v),
        np.cos((x * np.float32(100)).astype(np.float64)),
        np.tan(v),
        np.exp(v),
        np.log(np.abs(x) + np.float32(0.1)),
        m ** float(np.float32(1.7)),
        np.sqrt(m),
        1 / np.sqrt(np.abs(x) + np.float32(0.1)),
        _erf(v),
        np.tanh(v),
        np.arctan2(v, float(np.float32(0.7))),
        np.cbrt(v),
        np.fmod(x, np.float32(0.3)),
        _gamma(np.abs(x) + np.float32(0.5)),
        1 / v,
        np.sin((x * np.float32(100000)).astype(np.float64)),
    ]
    return {1: np.stack(columns, -1).reshape(-1)}


def _double_functions(a: list[Any]) -> dict[int, np.ndarray]:
    v = a[0]
    m = np.abs(v)
    columns = [
        np.sin(v),
        np.cos(v * 100),
        np.exp(v),
        np.log(m + 0.1),
        m**1.7,
        np.sqrt(m),
        1 / v,
        _erf(v),
        np.tanh(v),
        np.arctan2(v, 0.7),
        np.cbrt(v),
        np.floor(v * 10) + (v * v + 1) + np.rint(v) + np.trunc(v * 3),
    ]
    return {1: np.stack(columns, -1).reshape(-1)}


def _half(a: list[Any]) -> dict[int, np.ndarray]:
    x, y = a[:2]
    columns = [
        x + y,
        x * y,
        (x.astype(np.float64) * y + x).astype(np.float16),
        x / y,
        np.maximum(x, y),
        np.where(x < y, x, -y),
        (x.astype(np.float32) * np.float32(3)).astype(np.float16),
        x + y,
    ]
    return {2: np.stack(columns, -1).reshape(-1)}


def _bfloat(a: list[Any]) -> dict[int, np.ndarray]:
    x, y = (v.astype(np.float32) for v in a[:2])
    wide = x.astype(np.float64) * y + y
    columns = [x + y, x * y, wide, x / np.float32(3)]
    return {2: np.stack([c.astype(ml_dtypes.bfloat16) for c in columns], -1).reshape(-1)}


def _rounded(value: np.ndarray, error: np.ndarray, mode: str) -> np.ndarray:
    """Round exact `value` (+ `error`, far smaller) to float32; exact comparisons in float64."""
    near = value.astype(np.float32)
    back = near.astype(np.float64)
    above = (back > value) | ((back == value) & (error < 0))
    below = (back < value) | ((back == value) & (error > 0))
    up, down = np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))
    if mode == "rd":
        return np.where(above, down, near)
    if mode == "ru":
        return np.where(below, up, near)
    if mode == "rz":
        return np.where(value > 0, _rounded(value, error, "rd"), _rounded(value, error, "ru"))
    return near


def _rounding(a: list[Any]) -> dict[int, np.ndarray]:
    x, y = (v.astype(np.float64) for v in a[:2])
    nothing = np.zeros_like(x)
    modes = ("rn", "rz", "rd", "ru")
    columns = [_rounded(x + y, nothing, mode) for mode in modes]
    columns += [_rounded(x * y, nothing, mode) for mode in modes]
    columns += [_rounded(x * y + x, nothing, mode) for mode in modes]
    quotient = x / y
    columns += [_rounded(quotient, nothing, "rn"), _rounded(quotient, nothing, "ru")]
    columns += [np.sqrt(np.abs(x)).astype(np.float32), _rounded(1 / y, nothing, "rd")]
    whole = [f(x).astype(np.int32) for f in (np.rint, np.trunc, np.floor, np.ceil)]
    return {2: np.stack(columns, -1).reshape(-1), 3: np.stack(whole, -1).reshape(-1)}


def _short(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return floats with few enough bits that float64 holds their sums and products exactly."""
    mantissa = rng.integers(2**19, 2**20, count) * rng.choice([-1, 1], count)
    return np.ldexp(mantissa, rng.integers(-22, -17, count)).astype(np.float32)


MATH = (
    _MATH(
        name="float_functions",
        kernel="float_functions",
        grid=(4,),
        block=(64,),
        arguments=lambda rng: [
            (rng.standard_normal(250) * 3).astype(np.float32),
            np.zeros(4000, np.float32),
            np.int32(250),
        ],
        expected=_float_functions,
        rtol=2e-5,
        atol=1e-6,
        same_on_gpu=False,
    ),
    _MATH(
        name="double_functions",
        kernel="double_functions",
        grid=(2,),
        block=(64,),
        arguments=lambda rng: [rng.standard_normal(100) * 3, np.zeros(1200), np.int32(100)],
        expected=_double_functions,
        rtol=1e-12,
        atol=1e-13,
        same_on_gpu=False,
    ),
    _MATH(
        name="half_arithmetic",
        kernel="half_arithmetic",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [
            *rng.standard_normal((2, 64)).astype(np.float16),
            np.zeros(512, np.float16),
        ],
        expected=_half,
        same_on_gpu=False,
    ),
    _MATH(
        name="bfloat_arithmetic",
        kernel="bfloat_arithmetic",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [
            *rng.standard_normal((2, 64)).astype(ml_dtypes.bfloat16),
            np.zeros(256, ml_dtypes.bfloat16),
        ],
        expected=_bfloat,
    ),
    _MATH(
        name="rounding",
        kernel="rounding",
        grid=(1,),
        block=(128,),
        arguments=lambda rng: [
            _short(128, rng),
            _short(128, rng),
            np.zeros(2048, np.float32),
            np.zeros(512, np.int32),
        ],
        expected=_rounding,
    ),
)
