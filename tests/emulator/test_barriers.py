"""Reports on barriers, masks and launches that do not end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from corpus._case import cuda
from emulate import launch
from emulator_internals import Fault

import culaunch as cl
from culaunch import testing

LAUNCH_FAILED, LAUNCH_TIMEOUT = 719, 702


def run(kernel: str, *arguments: Any, **how: Any) -> np.ndarray:
    out = np.zeros(64, np.int32)
    launch(cuda("barriers.cu"), kernel, out, *arguments, **{"block": (64,), **how})
    return out


def fail(kernel: str, *arguments: Any, **how: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        run(kernel, *arguments, **how)
    return caught.value


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("kernel", ["stay_away", "loop"])
def test_a_barrier_that_some_never_reach_is_found_in_either_order(kernel: str, first: int) -> None:
    fault = fail(kernel, np.int32(first))
    assert fault.code == LAUNCH_FAILED
    assert "exits without reaching the bar" in str(fault)


@pytest.mark.parametrize("first", [0, 1])
def test_an_early_return_is_tolerated_in_either_order(first: int) -> None:
    out = run("leave_early", np.int32(20), np.int32(first))
    np.testing.assert_array_equal(out, (np.arange(64) < 20) != bool(first))


def test_a_mask_without_the_caller_is_found() -> None:
    fault = fail("stranger")
    assert "lane 31 of the warp, which its mask 0x7fffffff does not name" in str(fault)
    assert fault.thread == (31, 0, 0)
    assert str(fault.source).endswith("barriers.cu:30")


def test_a_warp_barrier_without_the_caller_is_found() -> None:
    fault = fail("stranger_at_barrier")
    assert "bar.warp.sync is executed by lane 16" in str(fault)


def test_masks_of_parts_of_a_warp_are_right() -> None:
    out = run("friends")
    np.testing.assert_array_equal(out, np.repeat(np.arange(64).reshape(8, 8).sum(1), 8))


def test_a_time_limit_says_where_the_threads_are() -> None:
    fault = fail("hang", time_limit=0.2, grid=(2,))
    assert fault.code == LAUNCH_TIMEOUT
    assert fault.block == (0, 0, 0)
    assert fault.thread is not None
    assert fault.thread[0] < 32
    assert str(fault.source).endswith("barriers.cu:54")
    others = "64 threads waiting at a barrier, the first block (0, 0, 0), thread (32, 0, 0)"
    assert others in str(fault)
    assert "barriers.cu:55" in str(fault)


def test_a_deadlock_says_where_all_threads_are() -> None:
    fault = fail("two_names")
    assert "barrier 1 is never complete: 32 of 64" in str(fault)
    assert "barriers.cu:62" in str(fault)
    others = "32 threads waiting at a barrier, the first block (0, 0, 0), thread (32, 0, 0)"
    assert others in str(fault)
    assert "barriers.cu:64" in str(fault)


TWO_PLACES = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {{ .reg .b32 %t, %n, %v; .reg .b64 %o; .reg .pred %p;
.shared .b32 box[64];
mov.u32 %t, %tid.x; mov.u32 %n, {number}; setp.lt.u32 %p, %t, 32; @%p bra FIRST;
mov.u32 %v, box; mad.lo.u32 %v, %t, 4, %v; st.shared.u32 [%v+-128], %t;
bar.sync %n; mov.u32 %v, %t; bra DONE;
FIRST: bar.sync %n; mov.u32 %v, box; mad.lo.u32 %v, %t, 4, %v; ld.shared.u32 %v, [%v];
DONE: ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 4, %o; st.global.u32 [%o], %v; ret; }}"""


MEETING = [*range(32, 64), *range(32, 64)]


@pytest.mark.gpu
def test_on_the_gpu_a_named_barrier_of_the_block_may_stand_at_several_places() -> None:
    with testing.use_driver("cuda"), cl.load(TWO_PLACES.format(number=15).encode()) as module:
        out = cl.zeros(64, "int32")
        module["k"].launch(out, grid=1, block=64)
        np.testing.assert_array_equal(out.numpy(), MEETING)


@pytest.mark.parametrize("races", [False, True])
def test_a_named_barrier_of_the_block_may_stand_at_several_places(races: bool) -> None:
    """ThunderKittens meets at barrier 15. Barrier 0 is __syncthreads, which is one place."""
    out = np.zeros(64, np.int32)
    launch(TWO_PLACES.format(number=15), "k", out, block=(64,), check_races=races)
    np.testing.assert_array_equal(out, MEETING)
    with pytest.raises(Fault, match="barrier 0 is divergent"):
        launch(TWO_PLACES.format(number=0), "k", out, block=(64,), check_races=races)
