"""CUB's block-wide algorithms."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from corpus._case import Case, from_cuda

_CUB = partial(Case, ptx=from_cuda("cub.cu"))


def _pairs(a: list[Any]) -> dict[int, np.ndarray]:
    keys = a[0].reshape(-1, 512)
    order = np.argsort(-keys, axis=1, kind="stable")
    return {
        0: np.take_along_axis(keys, order, 1).reshape(-1),
        1: order.astype(np.int32).reshape(-1),
    }


CUB = (
    _CUB(
        name="block_reduce",
        kernel="block_reduce",
        grid=(5,),
        block=(128,),
        arguments=lambda rng: [rng.integers(-99, 99, 640, np.int32), np.zeros(5, np.int32)],
        expected=lambda a: {1: a[0].reshape(5, 128).sum(1).astype(np.int32)},
    ),
    _CUB(
        name="block_reduce_max",
        kernel="block_reduce_max",
        grid=(3,),
        block=(96,),
        arguments=lambda rng: [rng.standard_normal(288, np.float32), np.zeros(3, np.float32)],
        expected=lambda a: {1: a[0].reshape(3, 96).max(1)},
    ),
    _CUB(
        name="block_scan",
        kernel="block_scan",
        grid=(3,),
        block=(128,),
        arguments=lambda rng: [rng.integers(-99, 99, 1536, np.int32)],
        expected=lambda a: {0: a[0].reshape(3, 512).cumsum(1).astype(np.int32).reshape(-1)},
    ),
    _CUB(
        name="block_radix_sort",
        kernel="block_radix_sort",
        grid=(4,),
        block=(128,),
        arguments=lambda rng: [rng.integers(0, 2**32, 2048, np.uint32)],
        expected=lambda a: {0: np.sort(a[0].reshape(4, 512), 1).reshape(-1)},
    ),
    _CUB(
        name="block_sort_pairs",
        kernel="block_sort_pairs",
        grid=(2,),
        block=(64,),
        arguments=lambda rng: [rng.standard_normal(1024, np.float32), np.zeros(1024, np.int32)],
        expected=_pairs,
    ),
    _CUB(
        name="block_histogram",
        kernel="block_histogram",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [
            rng.integers(0, 256, 256, np.uint8),
            np.zeros(256, np.uint32),
        ],
        expected=lambda a: {1: np.bincount(a[0], minlength=256).astype(np.uint32)},
    ),
)
