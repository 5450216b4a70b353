"""wmma, asynchronous copies, barrier objects, scoped atomics."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from corpus._case import Case, from_cuda

_ADVANCED = partial(Case, ptx=from_cuda("advanced.cu"), grid=(1,))


def _wmma(a: list[Any]) -> dict[int, np.ndarray]:
    return {2: 2 * (a[0].astype(np.float64) @ a[1].astype(np.float64).T)}


def _wmma_int8(a: list[Any]) -> dict[int, np.ndarray]:
    x, y = (v.astype(np.int32) for v in a[:2])
    return {2: (x @ y + 1).T.astype(np.int32)}


def _async_copy(a: list[Any]) -> dict[int, np.ndarray]:
    tiles = a[0].reshape(-1, 4, 64)[:, :, np.arange(64) ^ 1]
    total = np.zeros(64, np.float32)
    for row in tiles.reshape(-1, 64):
        total = total + row
    return {1: total}


def _pipelined(a: list[Any]) -> dict[int, np.ndarray]:
    total = np.zeros(64, np.int32)
    for tile in a[0].reshape(-1, 64):
        total = total * 3 + tile[::-1]
    return {1: total}


def _barrier_object(a: list[Any]) -> dict[int, np.ndarray]:
    v = a[0]
    for _ in range(3):
        v = v + 1 + np.roll(v, -7)
    return {1: v}


ADVANCED = (
    _ADVANCED(
        name="wmma_half",
        kernel="wmma_half",
        block=(32,),
        arguments=lambda rng: [
            *rng.standard_normal((2, 16, 64)).astype(np.float16),
            np.zeros((16, 16), np.float32),
            np.int32(64),
        ],
        expected=_wmma,
        rtol=1e-4,
        atol=1e-4,
        same_on_gpu=False,
    ),
    _ADVANCED(
        name="wmma_int8",
        kernel="wmma_int8",
        block=(32,),
        arguments=lambda rng: [
            *rng.integers(-128, 128, (2, 16, 16), np.int8),
            np.zeros((16, 16), np.int32),
        ],
        expected=_wmma_int8,
    ),
    _ADVANCED(
        name="async_copy",
        kernel="async_copy",
        block=(64,),
        shared=1024,
        arguments=lambda rng: [
            rng.standard_normal(1024, np.float32),
            np.zeros(64, np.float32),
            np.int32(1024),
        ],
        expected=_async_copy,
    ),
    _ADVANCED(
        name="pipelined",
        kernel="pipelined",
        block=(64,),
        arguments=lambda rng: [
            rng.integers(-99, 99, 320, np.int32),
            np.zeros(64, np.int32),
            np.int32(5),
        ],
        expected=_pipelined,
    ),
    _ADVANCED(
        name="barrier_object",
        kernel="barrier_object",
        block=(64,),
        arguments=lambda rng: [rng.integers(-99, 99, 64, np.int32), np.zeros(64, np.int32)],
        expected=_barrier_object,
    ),
    _ADVANCED(
        name="handshake",
        kernel="handshake",
        grid=(2,),
        block=(64,),
        arguments=lambda rng: [
            np.zeros(64, np.int32),
            np.zeros(1, np.int32),
            np.zeros(64, np.int32),
        ],
        expected=lambda a: {2: np.arange(64, dtype=np.int32)[::-1] * 5},
    ),
)
