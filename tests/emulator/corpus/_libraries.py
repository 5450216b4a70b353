"""Correct programs of CUB, libcu++, cooperative groups, Thrust and CUTLASS."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from corpus._case import Case, from_cuda, from_ptx

I4 = np.int32
# The status of a tile that CUB has not scanned yet.
_INVALID = 99


def _cases(file: str, *options: str) -> Any:
    return partial(Case, ptx=from_cuda(file, *options))


_BLOCK, _DEVICE = _cases("cub_blocks.cu"), _cases("cub_device.cu")
_CUDA, _GROUPS = _cases("libcudacxx.cu"), _cases("more_groups.cu")
_THRUST = _cases("thrust.cu", "--device-as-default-execution-space")


def _integers(rng: np.random.Generator, count: int, low: int = -99, high: int = 99) -> np.ndarray:
    return rng.integers(low, high, count, I4)


def _zeros(count: int) -> np.ndarray:
    return np.zeros(count, I4)


def _tiles(count: int) -> np.ndarray:
    """Return the words of CUB's tiles: 32 of padding, then one for each tile."""
    words = np.zeros((32 + count, 2), I4)
    words[32:, 0] = _INVALID
    return words.reshape(-1)


def _same(count: int, file: Any, kernel: str, block: int, expected: Any, **how: Any) -> Case:
    """Return a case with an array of random integers, and an output of the same size."""
    return file(
        name=kernel,
        kernel=kernel,
        grid=(1,),
        block=(block,),
        arguments=lambda rng: [_integers(rng, count), _zeros(count)],
        expected=lambda a: {1: expected(a[0]).astype(I4)},
        **how,
    )


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
        arguments=lambda rng: [_integers(rng, 768), _zeros(768), I4(n)],
        expected=expected,
    )


def _scan(kernel: str) -> Case:
    return _BLOCK(
        name=kernel,
        kernel=kernel,
        grid=(1,),
        block=(96,),
        arguments=lambda rng: [_integers(rng, 96), _zeros(96), _zeros(1)],
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
        arguments=lambda rng: [_integers(rng, 100), _zeros(1), I4(100)],
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


def _sorted_pairs(a: list[Any], row: int) -> dict[int, np.ndarray]:
    keys = a[0].reshape(-1, row)
    order = np.argsort(keys, axis=1, kind="stable")
    return {
        0: np.take_along_axis(keys, order, 1).reshape(-1),
        1: order.astype(I4).reshape(-1),
    }


def _selected(a: list[Any]) -> dict[int, np.ndarray]:
    kept = a[0][:1000][a[0][:1000] % 2 == 0]
    y = np.zeros(1024, I4)
    y[: len(kept)] = kept
    return {1: y, 2: np.array([len(kept)], I4)}


BLOCKS = (
    _load_store("load_transpose"),
    _load_store("load_warp_transpose"),
    _same(192, _BLOCK, "block_exchange", 64, lambda x: x.reshape(3, 64).T.reshape(-1)),
    _same(128, _BLOCK, "block_adjacent_difference", 64, lambda x: np.diff(x, prepend=0)),
    _same(192, _BLOCK, "block_discontinuity", 96, lambda x: np.r_[1, x[1:] != x[:-1]]),
    _same(192, _BLOCK, "block_shuffle", 96, lambda x: np.r_[-1, x[:-1]]),
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
            _integers(rng, 32), _integers(rng, 32, 1, 16), _zeros(512), _zeros(1),
        ],
        expected=_decoded,
    ),
    _BLOCK(
        name="block_merge_sort_all",
        kernel="block_merge_sort_all",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [_integers(rng, 192)],
        expected=lambda a: {0: np.sort(a[0])},
    ),
    _same(192, _BLOCK, "block_radix_sort_striped", 64, lambda x: np.sort(x)[::-1]),
    _scan("block_scan_raking"),
    _scan("block_scan_warps"),
    _reduce("block_reduce_warps"),
    _reduce("block_reduce_raking"),
    _BLOCK(
        name="warp_segmented_sum",
        kernel="warp_segmented_sum",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [_integers(rng, 64), _integers(rng, 64, 0, 2), _zeros(64)],
        expected=_segments,
    ),
    _same(64, _BLOCK, "warp_scan_of_sixteen", 64, _sixteenths),
    _same(
        256, _BLOCK, "warp_exchange", 64,
        lambda x: x.reshape(4, 4, 16).transpose(0, 2, 1).reshape(-1),
    ),
    _same(192, _BLOCK, "warp_load_store", 64, lambda x: 3 * x + np.arange(192) % 3),
    _BLOCK(
        name="warp_merge_sort_pairs",
        kernel="warp_merge_sort_pairs",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [_integers(rng, 128, 0, 9), _zeros(128)],
        expected=lambda a: _sorted_pairs(a, 32),
    ),
    _BLOCK(
        name="thread_sort",
        kernel="thread_sort",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [_integers(rng, 320)],
        expected=lambda a: {0: np.sort(a[0].reshape(64, 5), 1).reshape(-1)},
    ),
)  # fmt: skip

DEVICE = (
    _DEVICE(
        name="device_scan",
        kernel="device_scan",
        grid=(8,),
        block=(64,),
        arguments=lambda rng: [_integers(rng, 2000), _zeros(2000), _tiles(8), I4(2000)],
        expected=lambda a: {1: a[0].cumsum().astype(I4)},
        same_on_gpu=False,  # the words of the tiles are CUB's own
    ),
    _DEVICE(
        name="device_reduce",
        kernel="device_reduce",
        grid=(3,),
        block=(64,),
        arguments=lambda rng: [_integers(rng, 2000), _zeros(1), I4(2000)],
        expected=lambda a: {1: np.array([a[0].sum()], I4)},
    ),
    _DEVICE(
        name="device_select",
        kernel="device_select",
        grid=(4,),
        block=(64,),
        arguments=lambda rng: [_integers(rng, 1024), _zeros(1024), _zeros(1), _tiles(4), I4(1000)],
        expected=_selected,
        same_on_gpu=False,
    ),
)

STANDARD_LIBRARY = (
    _same(128, _CUDA, "barrier_copies", 64, lambda x: x.reshape(2, 64)[:, ::-1].reshape(-1)),
    _CUDA(
        name="block_pipeline",
        kernel="block_pipeline",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [_integers(rng, 320), _zeros(64), I4(5)],
        expected=lambda a: {1: a[0].reshape(5, 64)[:, ::-1].sum(0).astype(I4)},
    ),
    _CUDA(
        name="specialized_pipeline",
        kernel="specialized_pipeline",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [_integers(rng, 160), _zeros(32), I4(5)],
        expected=lambda a: {1: a[0].reshape(5, 32)[:, ::-1].sum(0).astype(I4)},
    ),
    _CUDA(
        name="atomic_refs",
        kernel="atomic_refs",
        grid=(4,),
        block=(64,),
        arguments=lambda rng: [_zeros(8), _integers(rng, 256), np.full(1, -1000, I4)],
        expected=lambda a: {
            0: np.bincount(a[1] & 7, minlength=8).astype(I4),
            2: np.array([a[1].max()], I4),
        },
    ),
    _CUDA(
        name="release_acquire",
        kernel="release_acquire",
        grid=(3,),
        block=(64,),
        arguments=lambda _: [_zeros(64), _zeros(1), _zeros(192)],
        expected=lambda _: {
            2: (3 * np.arange(64)[::-1] + np.arange(3)[:, None]).astype(I4).reshape(-1)
        },
    ),
    _CUDA(
        name="semaphore",
        kernel="semaphore",
        grid=(1,),
        block=(64,),
        arguments=lambda _: [_zeros(10), I4(10)],
        expected=lambda _: {0: np.arange(10, dtype=I4) ** 2},
    ),
    _CUDA(
        name="latch",
        kernel="latch",
        grid=(1,),
        block=(64,),
        arguments=lambda _: [_zeros(64)],
        expected=lambda _: {0: 5 * (np.arange(64, dtype=I4) ^ 33)},
    ),
    _CUDA(
        name="mdspan_transpose",
        kernel="mdspan_transpose",
        grid=(1,),
        block=(16, 16),
        arguments=lambda rng: [_integers(rng, 143), _zeros(143), I4(11), I4(13)],
        expected=lambda a: {1: a[0].reshape(11, 13).T.reshape(-1)},
    ),
)


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
    _same(64, _GROUPS, "labeled_sums", 64, _labeled),
    _same(64, _GROUPS, "binary_ranks", 64, _ranks),
    _same(256, _GROUPS, "group_copy", 64, lambda x: x[::-1]),
    _GROUPS(
        name="shared_stages",
        kernel="shared_stages",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [_integers(rng, 128), _zeros(64)],
        expected=lambda a: {1: a[0][:64][::-1] + a[0][64:][np.arange(64) ^ 1]},
    ),
    _same(64, _GROUPS, "tile_scan_and_votes", 64, _votes),
    _GROUPS(
        name="one_thread_invokes",
        kernel="one_thread_invokes",
        grid=(1,),
        block=(64,),
        arguments=lambda _: [_zeros(60), I4(50)],
        expected=lambda _: {0: np.r_[50, np.zeros(59, I4)].astype(I4)},
    ),
    _GROUPS(
        name="grid_sum",
        kernel="grid_sum",
        grid=(4,),
        block=(64,),
        cooperative=True,
        arguments=lambda rng: [_integers(rng, 256), _zeros(4), _zeros(1)],
        expected=lambda a: {
            1: a[0].reshape(4, 64).sum(1).astype(I4),
            2: np.array([a[0].sum()], I4),
        },
    ),
)


def _rows_of(values: Any, width: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Return rows filled up with zeros, and the lengths of the lists."""
    rows = np.zeros((len(values), width), I4)
    for row, one in zip(rows, values, strict=True):
        row[: len(one)] = one
    return rows.reshape(-1), np.array([len(one) for one in values], I4)


def _reduced(a: list[Any]) -> dict[int, np.ndarray]:
    keys, sums = [], []
    for row, values in zip(a[0].reshape(-1, 16), a[1].reshape(-1, 16), strict=True):
        heads = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
        keys.append(row[heads])
        sums.append(np.add.reduceat(values, heads))
    out_keys, counts = _rows_of(keys)
    return {2: out_keys, 3: _rows_of(sums)[0], 4: counts}


def _odd(a: list[Any]) -> dict[int, np.ndarray]:
    y, counts = _rows_of([row[row & 1 == 1] for row in a[0].reshape(-1, 16)])
    return {1: y, 2: counts}


def _searched(a: list[Any]) -> dict[int, np.ndarray]:
    place = np.searchsorted(a[0], a[1])
    return {2: (place[:, None] + np.array([0, 1, 3, 6])).astype(I4).reshape(-1)}


THRUST = (
    _THRUST(
        name="thrust_sort",
        kernel="thrust_sort",
        grid=(1,),
        block=(8,),
        arguments=lambda rng: [_integers(rng, 256, 0, 9), _zeros(256)],
        expected=lambda a: _sorted_pairs(a, 32),
    ),
    _THRUST(
        name="thrust_reduce_by_key",
        kernel="thrust_reduce_by_key",
        grid=(1,),
        block=(4,),
        arguments=lambda rng: [
            _integers(rng, 64, 0, 3), _integers(rng, 64), _zeros(64), _zeros(64), _zeros(4),
        ],
        expected=_reduced,
    ),
    _THRUST(
        name="thrust_copy_if",
        kernel="thrust_copy_if",
        grid=(1,),
        block=(4,),
        arguments=lambda rng: [_integers(rng, 64), _zeros(64), _zeros(4)],
        expected=_odd,
    ),
    _THRUST(
        name="thrust_unique",
        kernel="thrust_unique",
        grid=(1,),
        block=(4,),
        # Thrust leaves anything behind the last element that it keeps.
        arguments=lambda rng: [np.sort(_integers(rng, 64, 0, 9)), _zeros(4)],
        expected=lambda a: {
            1: np.array([len(np.unique(row)) for row in a[0].reshape(-1, 16)], I4)
        },
    ),
    _THRUST(
        name="thrust_scan",
        kernel="thrust_scan",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [
            np.sort(_integers(rng, 40)), _integers(rng, 64), _zeros(256), I4(40),
        ],
        expected=_searched,
    ),
)  # fmt: skip


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
        arguments=lambda rng: [_integers(rng, 1024), _zeros(1024)],
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

LIBRARIES: tuple[Case, ...] = (
    *BLOCKS, *DEVICE, *STANDARD_LIBRARY, *COOPERATIVE_GROUPS, *THRUST, *CUTLASS,
)  # fmt: skip
