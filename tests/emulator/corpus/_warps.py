"""Warp intrinsics, atomics, locks, waiting, barriers with counts."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from corpus._case import Case, from_cuda

_WARPS = partial(Case, ptx=from_cuda("warps.cu"), grid=(1,))


def _values(count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-99, 100, count, np.int32)


def _shuffles(a: list[Any]) -> dict[int, np.ndarray]:
    rows = a[0].reshape(-1, 32)
    lane = np.arange(32)

    def pick(source: np.ndarray, valid: np.ndarray | bool = True) -> np.ndarray:
        return rows[:, np.where(valid, source, lane)]

    odd = lane % 2 == 1
    down = np.where(lane + 2 < 32, lane + 2, lane)
    columns = [
        pick(lane ^ 5),
        pick(lane - 3, lane % 16 >= 3),
        pick(lane + 2, lane % 8 + 2 < 8),
        pick(lane ^ 9),
        pick(lane // 4 * 4 + lane * 3 % 4),
        pick(lane ^ 1),
        np.where(odd, rows[:, 7:8], 0),
        np.where(odd, 0, rows[:, down]),
    ]
    return {1: np.stack(columns, -1).reshape(-1).astype(np.int32)}


def _votes(a: list[Any]) -> dict[int, np.ndarray]:
    out = []
    for row in a[0].reshape(-1, 32):
        remainder, quotient = np.fmod(row, 5), (row / 1000).astype(int)
        ballot = _mask(row > 0)
        same = (quotient == quotient[0]).all()
        for lane in range(32):
            out += [
                ballot,
                int((row > 90).any()),
                int((row > -95).all()),
                _mask(remainder == remainder[lane]),
                0xFFFFFFFF if same else 0,
                int(same),
                int(row.sum()) & 0xFFFFFFFF,
                ballot if row[lane] > 0 else 0,
            ]
    return {1: np.array(out, np.uint32)}


def _mask(flags: np.ndarray) -> int:
    return int(sum(1 << i for i in np.flatnonzero(flags).tolist()))


def _atomics(a: list[Any]) -> dict[int, np.ndarray]:
    t = np.arange(192)
    v = t * 37 % 101
    i, u = a[0].copy(), a[1].copy()
    i[:] = [
        v.sum(),
        -v.sum(),
        (v - 50).min(),
        (v - 50).max(),
        np.bitwise_and.reduce(~(1 << (t % 9))),
        np.bitwise_or.reduce(1 << (t % 13)),
        np.bitwise_xor.reduce(v),
    ]
    dec = 0
    for _ in t:
        dec = 23 if dec == 0 or dec > 23 else dec - 1
    u[:] = [192 % 18, dec, 7]
    wide = np.array([int(v.sum()) << 33, int(v.max()) << 40], np.int64)
    f = np.array([0.25 * v[t % 4 == k].sum() for k in range(4)], np.float32)
    d = np.array([0.125 * v[t % 3 == k].sum() for k in range(3)])
    return {0: i, 1: u, 2: wide, 3: f, 4: d}


def _locked(a: list[Any]) -> dict[int, np.ndarray]:
    value = 1
    for _ in range(70):
        value = value * 3 % 1000003 + 1
    return {0: np.zeros(1, np.int32), 1: np.array([value], np.int32)}


def _chain(a: list[Any]) -> dict[int, np.ndarray]:
    rows = a[0].reshape(-1, 64)
    before = np.concatenate([[0], rows.sum(1).cumsum()[:-1]])
    return {1: (rows + before[:, None]).astype(np.int32).reshape(-1)}


def _block_votes(a: list[Any]) -> dict[int, np.ndarray]:
    out = [((r > 0).sum(), (r > -100).all(), (r > 97).any()) for r in a[0].reshape(-1, 80)]
    return {1: np.array(out, np.int32).reshape(-1)}


WARPS = (
    _WARPS(
        name="shuffles",
        kernel="shuffles",
        block=(96,),
        arguments=lambda rng: [_values(96, rng), np.zeros(768, np.int32)],
        expected=_shuffles,
    ),
    _WARPS(
        name="votes",
        kernel="votes",
        block=(96,),
        arguments=lambda rng: [_values(96, rng), np.zeros(768, np.uint32)],
        expected=_votes,
    ),
    _WARPS(
        name="atomics",
        kernel="atomics",
        grid=(3,),
        block=(64,),
        arguments=lambda rng: [
            np.array([0, 0, 0, 0, -1, 0, 0], np.int32),
            np.zeros(3, np.uint32),
            np.zeros(2, np.int64),
            np.zeros(4, np.float32),
            np.zeros(3, np.float64),
        ],
        expected=_atomics,
    ),
    _WARPS(
        name="half_atomics",
        kernel="half_atomics",
        block=(64,),
        arguments=lambda rng: [
            np.zeros(2, np.float16),
            np.zeros(2, ml_dtypes.bfloat16),
            np.zeros(2, np.float16),
        ],
        expected=lambda a: {
            0: np.array([64, 32], np.float16),
            1: np.array([128, 64], ml_dtypes.bfloat16),
            2: np.array([32, 32], np.float16),
        },
    ),
    _WARPS(
        name="spin_lock",
        kernel="spin_lock",
        grid=(2,),
        block=(35,),
        arguments=lambda rng: [np.zeros(1, np.int32), np.ones(1, np.int32)],
        expected=_locked,
    ),
    _WARPS(
        name="chained_scan",
        kernel="chained_scan",
        grid=(9,),
        block=(64,),
        arguments=lambda rng: [
            _values(576, rng),
            np.zeros(576, np.int32),
            np.zeros(9, np.int32),
            np.zeros(9, np.int32),
        ],
        expected=_chain,
    ),
    _WARPS(
        name="block_votes",
        kernel="block_votes",
        grid=(3,),
        block=(80,),
        arguments=lambda rng: [_values(240, rng), np.zeros(9, np.int32)],
        expected=_block_votes,
    ),
    _WARPS(
        name="named_barriers",
        kernel="named_barriers",
        block=(128,),
        arguments=lambda rng: [_values(64, rng), np.zeros(64, np.int32)],
        expected=lambda a: {1: a[0][::-1] * 2 + 1},
    ),
)
