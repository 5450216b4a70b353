"""CuTe kernels of CUTLASS."""

from __future__ import annotations

from typing import Any

import numpy as np

from corpus._case import Case, from_ptx
from corpus._helpers import integers, zeros


def _halves(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-3, 4, 4096).astype(np.float16)


def _product(a: list[Any]) -> dict[int, np.ndarray]:
    left, right = (x.reshape(64, 64).astype(np.float32) for x in a[:2])
    return {2: (left @ right.T).reshape(-1)}


CUTLASS = (
    Case(
        name="cutlass_transpose",
        ptx=from_ptx("cutlass.ptx"),
        kernel="cutlass_transpose",
        grid=(1,),
        block=(256,),
        arguments=lambda rng: [integers(rng, 1024), zeros(1024)],
        expected=lambda a: {1: a[0].reshape(32, 32).T.reshape(-1)},
    ),
    Case(
        name="cutlass_matmul",
        ptx=from_ptx("cutlass.ptx"),
        kernel="cutlass_matmul",
        grid=(1,),
        block=(128,),
        arguments=lambda rng: [_halves(rng), _halves(rng), np.zeros(4096, np.float32)],
        expected=_product,
    ),
)
