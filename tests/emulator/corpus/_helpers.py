"""Parts of cases: arrays, and the programs of one file."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from corpus._case import Case, from_cuda

I4 = np.int32


def cases(file: str, *options: str) -> Any:
    """Return the class of the cases of a CUDA file."""
    return partial(Case, ptx=from_cuda(file, *options))


def integers(rng: np.random.Generator, count: int, low: int = -99, high: int = 99) -> np.ndarray:
    """Return random integers."""
    return rng.integers(low, high, count, I4)


def zeros(count: int) -> np.ndarray:
    """Return an array of zeros."""
    return np.zeros(count, I4)


def same(count: int, file: Any, kernel: str, block: int, expected: Any, **how: Any) -> Case:
    """Return a case with an array of random integers, and an output of the same size."""
    return file(
        name=kernel,
        kernel=kernel,
        grid=(1,),
        block=(block,),
        arguments=lambda rng: [integers(rng, count), zeros(count)],
        expected=lambda a: {1: expected(a[0]).astype(I4)},
        **how,
    )


def sorted_pairs(a: list[Any], row: int) -> dict[int, np.ndarray]:
    """Return the sorted keys and the old places of rows."""
    keys = a[0].reshape(-1, row)
    order = np.argsort(keys, axis=1, kind="stable")
    return {
        0: np.take_along_axis(keys, order, 1).reshape(-1),
        1: order.astype(I4).reshape(-1),
    }
