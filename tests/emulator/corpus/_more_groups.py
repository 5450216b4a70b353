"""Cooperative groups that are divided, copy memory, or choose a thread."""

from __future__ import annotations

import numpy as np

from corpus._helpers import I4, cases, integers, same, zeros

_GROUPS = cases("more_groups.cu")


def _labeled(x: np.ndarray) -> np.ndarray:
    rows = x.reshape(-1, 32)
    label = np.fmod(rows, 3)
    same = label[:, :, None] == label[:, None, :]
    return np.where(same, rows[:, None, :], 0).sum(2).reshape(-1)


def _ranks(x: np.ndarray) -> np.ndarray:
    positive = x.reshape(-1, 32) > 0
    same = positive[:, :, None] == positive[:, None, :]
    earlier = same & (np.arange(32)[None, None, :] < np.arange(32)[None, :, None])
    return (earlier.sum(2) + 100 * same.sum(2)).reshape(-1)


def _votes(x: np.ndarray) -> np.ndarray:
    tiles = x.reshape(-1, 8)
    scans = tiles.cumsum(1) - tiles
    flags = 1000 * (tiles < 0).any(1) + 10000 * (tiles & 1).sum(1)
    return (scans + flags[:, None]).reshape(-1)


COOPERATIVE_GROUPS = (
    same(64, _GROUPS, "labeled_sums", 64, _labeled),
    same(64, _GROUPS, "binary_ranks", 64, _ranks),
    same(256, _GROUPS, "group_copy", 64, lambda x: x[::-1]),
    _GROUPS(
        name="shared_stages",
        kernel="shared_stages",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [integers(rng, 128), zeros(64)],
        expected=lambda a: {1: a[0][:64][::-1] + a[0][64:][np.arange(64) ^ 1]},
    ),
    same(64, _GROUPS, "tile_scan_and_votes", 64, _votes),
    _GROUPS(
        name="one_thread_invokes",
        kernel="one_thread_invokes",
        grid=(1,),
        block=(64,),
        arguments=lambda _: [zeros(60), I4(50)],
        expected=lambda _: {0: np.r_[50, np.zeros(59, I4)].astype(I4)},
    ),
    _GROUPS(
        name="grid_sum",
        kernel="grid_sum",
        grid=(4,),
        block=(64,),
        cooperative=True,
        arguments=lambda rng: [integers(rng, 256), zeros(4), zeros(1)],
        expected=lambda a: {
            1: a[0].reshape(4, 64).sum(1).astype(I4),
            2: np.array([a[0].sum()], I4),
        },
    ),
)
