"""Races on global memory: between blocks, by scopes, fences, releases and acquires."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from corpus._case import cuda
from emulate import launch
from emulator_internals import Device, Fault, Options

GRID, BLOCK = 4, 64
I = np.arange(GRID * BLOCK)  # noqa: E741


def run(kernel: str, **how: Any) -> tuple[np.ndarray, np.ndarray]:
    out, x = np.zeros(512, np.int32), np.zeros(512, np.int32)
    how = {"check_races": True, "time_limit": 60, **how}
    launch(cuda("global_races.cu"), kernel, out, x, grid=(GRID,), block=(BLOCK,), **how)
    return out, x


@pytest.mark.parametrize("lanes", [64, 1 << 15])
@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("neighbour_block", r"thread \(\d+, 0, 0\) of block \(\d, 0, 0\) (wrote|read) with no rel"),
        ("neighbour_thread", r"reads .* thread \(32, 0, 0\) wrote with no barrier in between"),
        ("one_result", r"writes .* thread \(0, 0, 0\) of block \(\d, 0, 0\) wrote with no release"),
        ("read_then_overwritten", r"of block \(\d, 0, 0\) (read|wrote) with no release"),
        ("count_then_read", r"of block \(\d, 0, 0\) (updated|read) with no release"),
        ("last_block_without_fence", r"reads .* of block \(\d, 0, 0\) wrote with no release"),
        ("last_block_of_one_thread", r"reads .* of block \(\d, 0, 0\) wrote with no release"),
        ("last_block_fence_of_block", r"reads .* of block \(\d, 0, 0\) wrote with no release"),
        ("count_in_block", r"updates .* updated with no scope that includes both threads"),
    ],
)
def test_accesses_without_an_order_race(kernel: str, said: str, lanes: int) -> None:
    with pytest.raises(Fault, match=said) as caught:
        run(kernel, lanes=lanes)
    fault = caught.value
    assert fault.reason.startswith("race: a thread ")
    assert fault.source is not None
    assert re.search(
        r"the other access: block .*, thread .* at PTX line \d+ \(source .*", str(fault)
    )
    assert "into an allocation of 2048 bytes" in str(fault)
    run(kernel, check_races=False)


@pytest.mark.parametrize("kernel", ["plain_flag", "relaxed_flag", "relaxed_wait", "flag_of_block"])
def test_a_flag_orders_only_with_release_and_acquire_of_a_wide_scope(kernel: str) -> None:
    with pytest.raises(Fault, match=r"race: a thread reads .* of block .* with no"):
        run(kernel)
    assert run(kernel, check_races=False)[0][0] == 5


def test_a_missing_grid_barrier_is_found() -> None:
    with pytest.raises(Fault, match=r"race: a thread writes .* read with no release"):
        run("grid_sync_once_too_few", cooperative=True)
    out, _ = run("grid_sync", cooperative=True)
    np.testing.assert_array_equal(out[:256], (I + 65) % 256 + 3)


SUM = GRID * np.arange(1, BLOCK + 1)


@pytest.mark.parametrize("lanes", [64, 1 << 15])
@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        ("last_block_reduces", SUM),
        ("last_block_all_fence", SUM),
        ("last_block_of_the_guide", [SUM.sum()]),
        ("look_back", range(GRID)),
        ("in_warps", I ^ 3),
    ],
)
def test_what_is_ordered_does_not_race(kernel: str, wanted: Any, lanes: int) -> None:
    out, _ = run(kernel, lanes=lanes)
    np.testing.assert_array_equal(out[: len(wanted)], wanted)


@pytest.mark.parametrize("kernel", ["flag_of_device", "flag_of_system", "elected"])
def test_release_and_acquire_order_two_blocks(kernel: str) -> None:
    out, _ = run(kernel)
    assert out[0] == (5 if kernel != "elected" else 7)


@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        ("histogram", [37, 37, 37, 37, 36, 36, 36, 0, 63, 63]),
        ("lock", [0, 4]),
        ("wait_of_one_thread", [4, 6, 10]),
        ("same_value", [1, 0]),
    ],
)
def test_atomics_locks_and_turns_do_not_race(kernel: str, wanted: list[int]) -> None:
    _, x = run(kernel)
    if kernel == "histogram":
        wanted[:7] = np.bincount(np.arange(64) % 7) * GRID
    np.testing.assert_array_equal(x[: len(wanted)], wanted)


def test_a_sum_by_compare_and_swap_does_not_race() -> None:
    _, x = run("add_by_swaps")
    assert x.view(np.float64)[0] == 256.0


def test_bytes_of_one_word_are_each_threads_own() -> None:
    _, x = run("pairs_of_bytes")
    np.testing.assert_array_equal(x.view(np.uint8)[:256], (I + 1) % 256)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [128, 1 << 15])
@pytest.mark.parametrize("kind", ["int", "wide"])
def test_the_scan_of_cub_does_not_race(kind: str, lanes: int) -> None:
    """A value and its flag are in one word, or a larger value is beside its flag."""
    device = Device(options=Options(check_races=True, time_limit=60, lanes=lanes))
    state = np.zeros(1 << 16, np.uint8)
    size = np.int32(state.nbytes)
    how: dict[str, Any] = {"grid": (20,), "device": device}
    text = cuda("look_back.cu")
    module = launch(text, f"init_{kind}", state, size, block=(128,), **how)
    x = np.ones(20 * 64, np.int32) if kind == "int" else np.ones((20 * 64, 3), np.int64)
    launch(text, f"scan_{kind}", x, state, size, block=(64,), module=module, **how)
    np.testing.assert_array_equal(x, np.cumsum(np.ones_like(x), axis=0))


# Each of the first 32 words is loaded by two threads, as Triton does with small tensors.
REPLICAS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry in_place(.param .u64 out, .param .u64 x) {{
  .reg .b64 %x, %o; .reg .b32 %t, %v, %i; .reg .pred %p;
  ld.param.u64 %x, [x]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; and.b32 %i, %t, 31;
  mad.wide.u32 %x, %i, 4, %x; mad.wide.u32 %o, %t, 4, %o;
  ld.global.u32 %v, [%x]; add.u32 %v, %v, 5; setp.lt.u32 %p, %t, 32;
  @%p st.global.u32 [%x], %v; {more} ret;
}}
"""


def test_a_value_that_another_thread_stores_may_change_after_a_read() -> None:
    out, x = np.zeros(64, np.int32), np.arange(64, dtype=np.int32)
    launch(REPLICAS.format(more=""), "in_place", out, x, block=(64,), check_races=True)
    np.testing.assert_array_equal(x[:32], np.arange(32) + 5)
    for more in ("st.global.u32 [%o], %v;", "setp.eq.u32 %p, %v, 9; @%p st.global.u32 [%o], %t;"):
        text = REPLICAS.format(more=more)
        with pytest.raises(Fault, match=r"writes global .* thread \(32, 0, 0\) read with no"):
            launch(text, "in_place", out, x, block=(64,), check_races=True)


def test_arrays_in_one_unit_of_sixteen_bytes_are_apart() -> None:
    memory = np.zeros(512 + 8, np.int32)
    start = -(memory.ctypes.data // 4) % 4
    small, out = memory[start : start + 1], memory[start + 1 :]
    small[0] = 3
    # All threads load the word of the first array, and write to the second one.
    text = REPLICAS.format(more="st.global.u32 [%o], %v;").replace("%t, 31", "%t, 0")
    text = text.replace("@%p st.global.u32 [%x], %v;", "")
    launch(text, "in_place", out, small, block=(64,), check_races=True)
    np.testing.assert_array_equal(out[:65], [8] * 64 + [0])
