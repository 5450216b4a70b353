"""Atomics of many threads at one word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from corpus._case import cuda
from emulate import image_of, launch
from emulator_internals import Device

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["count_up", "lock", "lock_by_exchange"])
def test_a_thousand_threads_at_one_word_take_half_a_second_at_most(
    kernel: str, processor_time: Callable[..., float]
) -> None:
    device = Device()
    module = device.load(image_of(cuda("contention.cu")))

    def run() -> None:
        word = np.zeros(2, np.int32)
        launch("", kernel, word, grid=(4,), block=(256,), device=device, module=module)
        assert word[0 if kernel == "count_up" else 1] == 1024

    assert processor_time(run) < 0.5


@pytest.mark.slow
def test_sixteen_thousand_threads_at_one_word_finish() -> None:
    word = np.zeros(2, np.int32)
    launch(cuda("contention.cu"), "count_up", word, grid=(16,), block=(1024,))
    assert word[0] == 16384


@pytest.mark.parametrize("values", [2, 5, 100])
def test_compare_and_swap_of_many_lanes_is_that_of_one_after_the_other(values: int) -> None:
    rng = np.random.default_rng(values)
    compare, value = rng.integers(0, values, (2, 256), np.int32)
    word, old = np.zeros(1, np.int32), np.zeros(256, np.int32)
    launch(cuda("contention.cu"), "swap_once", word, compare, value, old, block=(256,))
    now, wanted = 0, []
    for a, b in zip(compare.tolist(), value.tolist(), strict=True):
        wanted.append(now)
        now = b if now == a else now
    np.testing.assert_array_equal(old, wanted)
    assert word[0] == now


def test_exchange_of_many_lanes_is_that_of_one_after_the_other() -> None:
    value, word, old = np.arange(1, 257, dtype=np.int32), np.zeros(1, np.int32), np.zeros(256, "i4")
    launch(cuda("contention.cu"), "exchange_once", word, value, old, block=(256,))
    np.testing.assert_array_equal(old, np.arange(256))
    assert word[0] == 256
