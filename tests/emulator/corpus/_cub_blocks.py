"""CUB's algorithms of a block, a warp and a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corpus._helpers import I4, cases, integers, same, sorted_pairs, zeros

if TYPE_CHECKING:
    from corpus._case import Case

_BLOCK = cases("cub_blocks.cu")


def _load_store(kernel: str) -> Case:
    n = 700

    def expected(a: list[Any]) -> dict[int, np.ndarray]:
        y = np.zeros(768, I4)
        y[:n] = a[0][:n] + np.arange(n) % 256 // 4
        return {1: y}

    return _BLOCK(
        name=kernel,
        kernel=kernel,
        grid=(3,),
        block=(64,),
        arguments=lambda rng: [integers(rng, 768), zeros(768), I4(n)],
        expected=expected,
    )


def _scan(kernel: str) -> Case:
    return _BLOCK(
        name=kernel,
        kernel=kernel,
        grid=(1,),
        block=(96,),
        arguments=lambda rng: [integers(rng, 96), zeros(96), zeros(1)],
        expected=lambda a: {
            1: (a[0].cumsum() - a[0]).astype(I4),
            2: np.array([a[0].sum()], I4),
        },
    )


def _reduce(kernel: str) -> Case:
    return _BLOCK(
        name=kernel,
        kernel=kernel,
        grid=(1,),
        block=(128,),
        arguments=lambda rng: [integers(rng, 100), zeros(1), I4(100)],
        expected=lambda a: {1: np.array([a[0].sum()], I4)},
    )


def _decoded(a: list[Any]) -> dict[int, np.ndarray]:
    runs = np.repeat(a[0], a[1])
    y = np.zeros(512, I4)
    y[: len(runs)] = runs
    return {2: y, 3: np.array([len(runs)], I4)}


def _segments(a: list[Any]) -> dict[int, np.ndarray]:
    y = np.zeros(64, I4)
    heads = np.flatnonzero(a[1] | (np.arange(64) % 32 == 0))
    y[heads] = np.add.reduceat(a[0], heads)
    return {2: np.where(a[1], y, 0).astype(I4)}


def _sixteenths(x: np.ndarray) -> np.ndarray:
    rows = np.maximum.accumulate(x.reshape(-1, 16), 1)
    return np.c_[np.full(len(rows), -100), np.maximum(rows[:, :-1], -100)].reshape(-1)


BLOCKS = (
    _load_store("load_transpose"),
    _load_store("load_warp_transpose"),
    same(192, _BLOCK, "block_exchange", 64, lambda x: x.reshape(3, 64).T.reshape(-1)),
    same(128, _BLOCK, "block_adjacent_difference", 64, lambda x: np.diff(x, prepend=0)),
    same(192, _BLOCK, "block_discontinuity", 96, lambda x: np.r_[1, x[1:] != x[:-1]]),
    same(192, _BLOCK, "block_shuffle", 96, lambda x: np.r_[-1, x[:-1]]),
    _BLOCK(
        name="block_histogram_atomic",
        kernel="block_histogram_atomic",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [rng.integers(0, 256, 256, np.uint8), np.zeros(256, np.uint32)],
        expected=lambda a: {1: np.bincount(a[0], minlength=256).astype(np.uint32)},
    ),
    _BLOCK(
        name="block_run_length_decode",
        kernel="block_run_length_decode",
        grid=(1,),
        block=(32,),
        arguments=lambda rng: [
            integers(rng, 32), integers(rng, 32, 1, 16), zeros(512), zeros(1),
        ],
        expected=_decoded,
    ),
    _BLOCK(
        name="block_merge_sort_all",
        kernel="block_merge_sort_all",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [integers(rng, 192)],
        expected=lambda a: {0: np.sort(a[0])},
    ),
    same(192, _BLOCK, "block_radix_sort_striped", 64, lambda x: np.sort(x)[::-1]),
    _scan("block_scan_raking"),
    _scan("block_scan_warps"),
    _reduce("block_reduce_warps"),
    _reduce("block_reduce_raking"),
    _BLOCK(
        name="warp_segmented_sum",
        kernel="warp_segmented_sum",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [integers(rng, 64), integers(rng, 64, 0, 2), zeros(64)],
        expected=_segments,
    ),
    same(64, _BLOCK, "warp_scan_of_sixteen", 64, _sixteenths),
    same(
        256, _BLOCK, "warp_exchange", 64,
        lambda x: x.reshape(4, 4, 16).transpose(0, 2, 1).reshape(-1),
    ),
    same(192, _BLOCK, "warp_load_store", 64, lambda x: 3 * x + np.arange(192) % 3),
    _BLOCK(
        name="warp_merge_sort_pairs",
        kernel="warp_merge_sort_pairs",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [integers(rng, 128, 0, 9), zeros(128)],
        expected=lambda a: sorted_pairs(a, 32),
    ),
    _BLOCK(
        name="thread_sort",
        kernel="thread_sort",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [integers(rng, 320)],
        expected=lambda a: {0: np.sort(a[0].reshape(64, 5), 1).reshape(-1)},
    ),
)  # fmt: skip
