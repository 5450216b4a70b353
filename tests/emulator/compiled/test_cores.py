"""The blocks of a compiled kernel run on several cores, if they cannot communicate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import CompiledKernel, Device, Fault, Options, compiled_kernel

pytestmark = pytest.mark.needs("gcc")

HEAD = """
.version 8.7
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n) {
    .reg .pred %p; .reg .b32 %i, %n, %v, %w; .reg .b64 %at;
    .shared .align 16 .b8 box[256];
    mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %v, %tid.x; mad.lo.u32 %i, %i, %n, %v;
    ld.param.u64 %at, [x]; ld.param.u32 %n, [n]; mad.wide.u32 %at, %i, 4, %at;
"""
# Each thread reverses its block's elements in shared memory.
REVERSE = """
    shl.b32 %w, %v, 2; ld.global.u32 %i, [%at]; st.shared.u32 [%w], %i; bar.sync 0;
    sub.u32 %w, 252, %w; ld.shared.u32 %i, [%w]; st.global.u32 [%at], %i; ret; }
"""
BLOCKS = 500


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the other cores join from the first block on."""
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "compiled")
    monkeypatch.setattr("culaunch._emulator.compiled.engine._ALONE", 0)


def run(body: str, x: np.ndarray, cores: int = 3, **options: Any) -> CompiledKernel:
    device = Device(options=Options(cores=cores, **options))
    grid = (5, 10, BLOCKS // 50)
    flat = "mov.u32 %i, %ctaid.z; mad.lo.u32 %i, %i, 10, %ctaid.y; mad.lo.u32 %i, %i, 5, %ctaid.x;"
    text = HEAD.replace("mov.u32 %i, %ctaid.x;", flat) + body
    module = launch(text, "k", x, np.uint32(len(x)), grid=grid, block=(64,), device=device)
    return compiled_kernel(module.code("k"))


@pytest.mark.parametrize("cores", [1, 2, 3, 8])
def test_every_block_runs_once(cores: int) -> None:
    x = np.arange(BLOCKS * 64, dtype="u4")
    state = run(REVERSE, x, cores)
    assert (state.ran, state.cores) == (1, cores)
    wanted = np.arange(BLOCKS * 64).reshape(BLOCKS, 64)[:, ::-1]
    np.testing.assert_array_equal(x.reshape(BLOCKS, 64), wanted)


@pytest.mark.parametrize(
    ("access", "cores"),
    [
        ("red.global.add.u32 [%at], 1;", 1),
        ("ld.volatile.global.u32 %v, [%at];", 1),
        ("fence.acq_rel.gpu;", 1),
        ("st.relaxed.gpu.global.u32 [%at], 1;", 1),
        ("red.shared.add.u32 [box], 1;", 3),
    ],
)
def test_blocks_that_may_communicate_stay_in_order(access: str, cores: int) -> None:
    body = f"st.shared.u32 [box], 0; bar.sync 0; {access} ret; }}"
    assert run(body, np.zeros(BLOCKS * 64, "u4")).cores == cores


def test_a_fault_of_one_core_leaves_memory_as_the_other_engine_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The last blocks wait for nothing, so many have written when the fault comes.
    far = "st.global.u32 [%at], %i; setp.eq.u32 %p, %i, 31000; @%p st.global.u32 [0], %i; ret; }"
    ends = []
    for engine in ("numpy", "compiled"):
        monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", engine)
        x = np.zeros(BLOCKS * 64, "u4")
        with pytest.raises(Fault) as caught:
            run(far, x)
        ends.append((caught.value.block, caught.value.thread, caught.value.line, x.tolist()))
    assert ends[0] == ends[1]


def test_the_time_limit_ends_all_cores() -> None:
    forever = "again: add.u32 %w, %w, 1; setp.lt.u32 %p, %i, 31900; @%p ret; bra again; }"
    with pytest.raises(Fault, match=r"took longer than 0\.3 seconds") as caught:
        run(forever, np.zeros(BLOCKS * 64, "u4"), time_limit=0.3)
    assert caught.value.code == 702
