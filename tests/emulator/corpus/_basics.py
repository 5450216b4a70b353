"""Vector add, matrix product, histogram, Mandelbrot."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from corpus._case import Case, from_cuda

_BASIC = partial(Case, ptx=from_cuda("basics.cu"))


def _add(n: int) -> dict[str, Any]:
    return {
        "arguments": lambda rng: [
            *rng.standard_normal((2, n), np.float32),
            np.zeros(n, np.float32),
            np.int32(n),
        ],
        "expected": lambda a: {2: a[0] + a[1]},
    }


def _add4(a: list[Any]) -> dict[int, np.ndarray]:
    return {2: a[0] + a[1]}


def _matmul(a: list[Any]) -> dict[int, np.ndarray]:
    n = int(a[3])
    left, right = (x.reshape(n, n).astype(np.float64) for x in a[:2])
    return {2: (left @ right).reshape(-1)}


def matmul_arguments(n: int, rng: np.random.Generator) -> list[Any]:
    return [*rng.standard_normal((2, n * n), np.float32), np.zeros(n * n, np.float32), np.int32(n)]


def _mandelbrot(a: list[Any]) -> dict[int, np.ndarray]:
    width, height, limit = (int(x) for x in a[1:4])
    y, x = np.mgrid[:height, :width]
    cr, ci = -2.0 + 3.0 * x / width, -1.5 + 3.0 * y / height
    zr, zi = np.zeros_like(cr), np.zeros_like(ci)
    count = np.zeros(cr.shape, np.int32)
    with np.errstate(all="ignore"):
        for _ in range(limit):
            inside = zr * zr + zi * zi <= 4.0
            count += inside
            step = zr * zr - zi * zi + cr
            zr, zi = np.where(inside, step, zr), np.where(inside, 2.0 * (zr * zi) + ci, zi)
    return {0: count.reshape(-1)}


BASICS = (
    _BASIC(name="vector_add", kernel="vector_add", grid=(4,), block=(256,), **_add(1000)),
    _BASIC(name="vector_add_one", kernel="vector_add", grid=(1,), block=(1,), **_add(1)),
    _BASIC(
        name="vector_add4",
        kernel="vector_add4",
        grid=(2,),
        block=(96,),
        arguments=lambda rng: [
            *rng.standard_normal((2, 4 * 777), np.float32),
            np.zeros(4 * 777, np.float32),
            np.int32(777),
        ],
        expected=_add4,
    ),
    _BASIC(
        name="tiled_matmul",
        kernel="tiled_matmul",
        grid=(4, 4),
        block=(16, 16),
        arguments=partial(matmul_arguments, 64),
        expected=_matmul,
        rtol=1e-4,
        atol=1e-4,
    ),
    _BASIC(
        name="histogram",
        kernel="histogram",
        grid=(3,),
        block=(192,),
        arguments=lambda rng: [
            (rng.standard_normal(20000) * 30 + 128).clip(0, 255).astype(np.uint8),
            np.zeros(256, np.uint32),
            np.int32(20000),
        ],
        expected=lambda a: {1: np.bincount(a[0], minlength=256).astype(np.uint32)},
    ),
    _BASIC(
        name="mandelbrot",
        kernel="mandelbrot",
        grid=(7, 7),
        block=(16, 8),
        arguments=lambda rng: [
            np.zeros(100 * 50, np.int32),
            np.int32(100),
            np.int32(50),
            np.int32(64),
        ],
        expected=_mandelbrot,
    ),
)
