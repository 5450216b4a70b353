"""libcu++: CUDA's C++ standard library."""

from __future__ import annotations

import numpy as np

from corpus._helpers import I4, cases, integers, same, zeros

_CUDA = cases("libcudacxx.cu")

STANDARD_LIBRARY = (
    same(128, _CUDA, "barrier_copies", 64, lambda x: x.reshape(2, 64)[:, ::-1].reshape(-1)),
    _CUDA(
        name="block_pipeline",
        kernel="block_pipeline",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [integers(rng, 320), zeros(64), I4(5)],
        expected=lambda a: {1: a[0].reshape(5, 64)[:, ::-1].sum(0).astype(I4)},
    ),
    _CUDA(
        name="specialized_pipeline",
        kernel="specialized_pipeline",
        grid=(1,),
        block=(64,),
        arguments=lambda rng: [integers(rng, 160), zeros(32), I4(5)],
        expected=lambda a: {1: a[0].reshape(5, 32)[:, ::-1].sum(0).astype(I4)},
    ),
    _CUDA(
        name="atomic_refs",
        kernel="atomic_refs",
        grid=(4,),
        block=(64,),
        arguments=lambda rng: [zeros(8), integers(rng, 256), np.full(1, -1000, I4)],
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
        arguments=lambda _: [zeros(64), zeros(1), zeros(192)],
        expected=lambda _: {
            2: (3 * np.arange(64)[::-1] + np.arange(3)[:, None]).astype(I4).reshape(-1)
        },
    ),
    _CUDA(
        name="semaphore",
        kernel="semaphore",
        grid=(1,),
        block=(64,),
        arguments=lambda _: [zeros(10), I4(10)],
        expected=lambda _: {0: np.arange(10, dtype=I4) ** 2},
    ),
    _CUDA(
        name="latch",
        kernel="latch",
        grid=(1,),
        block=(64,),
        arguments=lambda _: [zeros(64)],
        expected=lambda _: {0: 5 * (np.arange(64, dtype=I4) ^ 33)},
    ),
    _CUDA(
        name="mdspan_transpose",
        kernel="mdspan_transpose",
        grid=(1,),
        block=(16, 16),
        arguments=lambda rng: [integers(rng, 143), zeros(143), I4(11), I4(13)],
        expected=lambda a: {1: a[0].reshape(11, 13).T.reshape(-1)},
    ),
)
