"""Races on shared memory: within a warp, with atomics, with asynchronous copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from corpus._case import cuda
from emulate import launch
from emulator_internals import Fault

I = np.arange(64)  # noqa: E741
X = np.arange(256, dtype=np.int32) ** 2


def run(kernel: str, *more: Any, block: int = 64, **how: Any) -> np.ndarray:
    out = np.zeros(96, np.int32)
    launch(cuda("races.cu"), kernel, out, *more, block=(block,), check_races=True, **how)
    return out[:64]


def fail(kernel: str, *more: Any, block: int = 64) -> Fault:
    with pytest.raises(Fault, match="race: a thread") as caught:
        run(kernel, *more, block=block, check_uninitialized=False)
    fault = caught.value
    assert fault.thread is not None
    assert fault.source is not None
    launch(
        cuda("races.cu"), kernel, np.zeros(64, np.int32), *more, block=(block,),
        check_uninitialized=False,
    )  # fmt: skip
    return fault


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("neighbour", "reads shared address 0x4, which thread (1, 0, 0) wrote"),
        ("two_paths", "writes shared address 0x4, which thread (0, 0, 0) read"),
        ("read_then_write", "writes shared address 0x0, which thread (0, 0, 0) read"),
        ("zero_then_count", "updates shared address 0x0, which thread (0, 0, 0) wrote"),
        ("count_then_read", "reads shared address 0x0, which thread (31, 0, 0) updated"),
        ("one_word", "writes shared address 0x0, which thread (31, 0, 0) wrote"),
    ],
)
def test_lanes_of_one_warp_race(kernel: str, said: str) -> None:
    fault = fail(kernel, block=32)
    assert fault.reason.endswith(f"{said} with no barrier or __syncwarp in between")


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["old_reduction", "beyond_the_tile"])
def test_lanes_that_did_not_wait_for_each_other_race(kernel: str) -> None:
    assert "__syncwarp" in fail(kernel).reason


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["zero_then_count", "count_then_read", "one_word"])
def test_threads_of_several_warps_race(kernel: str) -> None:
    fail(kernel)


@pytest.mark.parametrize(
    "kernel", ["copy_without_wait", "copy_with_barrier_alone", "copy_of_the_wrong_stage"]
)
def test_an_asynchronous_copy_must_be_waited_for(kernel: str) -> None:
    fault = fail(kernel, X)
    assert "cp.async of thread" in fault.reason
    assert "without waiting for a cp.async" in fault.reason


def test_an_asynchronous_copy_is_seen_by_others_after_a_barrier() -> None:
    assert "wrote with no barrier" in fail("copy_without_barrier", X).reason


def test_an_asynchronous_copy_must_not_overtake_reads() -> None:
    assert "read with no barrier" in fail("copy_over_what_is_read", X).reason


@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        ("warp_in_order", I ^ 2),
        ("new_reduction", np.where(I == 0, I.sum(), 0)),
        ("tiles", (I // 8 * 8 ^ 5) + 2),
        ("same_value", np.ones(64)),
        ("counted", np.full(64, 65)),
        ("flags", np.ones(64)),
    ],
)
def test_what_is_ordered_does_not_race(kernel: str, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(run(kernel), wanted)


def test_halves_of_a_warp_may_meet_apart() -> None:
    out = run("halves", block=32)
    np.testing.assert_array_equal(out[:32], np.where(I < 16, I ^ 1, I ^ 2)[:32])


def test_bytes_of_one_word_are_each_threads_own() -> None:
    out = run("bytes").view(np.uint8)[:64]
    np.testing.assert_array_equal(out, 64 - I + I // 4)


def test_pipelines_do_not_race() -> None:
    np.testing.assert_array_equal(run("stages", X), X.reshape(4, 64)[:, ::-1].sum(0))
    np.testing.assert_array_equal(run("by_mbarrier", X), X[:64][::-1])


def test_named_barriers_order_what_two_warps_do() -> None:
    np.testing.assert_array_equal(run("ping_pong"), np.r_[I[:32][::-1], I[:32][::-1] + 1])


@pytest.mark.slow
def test_cub_merge_sorts_do_not_race() -> None:
    keys = np.random.default_rng(0).integers(-999, 999, (1, 384), np.int32)
    wanted = np.sort(keys, axis=1)
    launch(cuda("undefined.cu"), "block_merge_sort", keys, block=(128,), check_races=True)
    np.testing.assert_array_equal(keys, wanted)
    short = np.random.default_rng(0).integers(-999, 999, (4, 64), np.int16)
    launch(cuda("undefined.cu"), "warp_merge_sort", short, block=(64,), check_races=True)
    assert (np.diff(short) >= 0).all()


def test_a_race_is_found_in_what_is_stored_together() -> None:
    with pytest.raises(Fault, match="race: a thread reads"):
        launch(
            cuda("races.cu"), "four_at_once", np.zeros(256, np.int32), block=(64,), check_races=True
        )


def test_a_racing_read_that_nobody_uses_is_no_race() -> None:
    np.testing.assert_array_equal(run("read_ahead", np.int32(0)), 3)
    fail("read_ahead", np.int32(40))
