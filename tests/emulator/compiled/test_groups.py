"""Threads that run side by side in compiled code leave what the NumPy engine leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from emulate import image_of, pack
from emulator_internals import Device, Fault, NamedArray, compiled_kernel

if TYPE_CHECKING:
    from emulator_internals import CompiledKernel

pytestmark = pytest.mark.needs("gcc")

HEAD = """
.version 8.7
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
    .reg .pred %p, %q, %r; .reg .b16 %h; .reg .b32 %i, %t, %b, %n, %v, %w, %k, %l, %m, %s<9>;
    .reg .f32 %f, %g; .reg .b64 %x, %y, %at, %to, %d, %e; .local .align 8 .b8 own[16];
    .shared .align 16 .b8 box[8192];
    mov.u32 %s0, %ctaid.x; mov.u32 %s1, %ntid.x; mov.u32 %s2, %ntid.y; mul.lo.u32 %s3, %s1, %s2;
    mov.u32 %s4, %tid.x; mov.u32 %s5, %tid.y; mad.lo.u32 %t, %s5, %s1, %s4;
    mad.lo.u32 %i, %s0, %s3, %t; ld.param.u32 %n, [n]; ld.param.u64 %x, [x]; ld.param.u64 %y, [y];
    mad.wide.u32 %at, %i, 4, %x; mad.wide.u32 %to, %i, 4, %y; shl.b32 %b, %t, 2;
    setp.ge.u32 %r, %i, %n; @%r ret;
"""
STORE = "st.global.u32 [%to], %v; ret; }"

BODIES = {
    "a sum": "ld.global.u32 %v, [%at]; add.u32 %v, %v, %i; " + STORE,
    "vectors": "and.b32 %w, %i, 0xFFC; mad.wide.u32 %d, %w, 4, %x;"
    "ld.global.v4.u32 {%v, %w, %k, %n}, [%d]; xor.b32 %v, %w, %n; " + STORE,
    "bytes": "cvt.u64.u32 %d, %i; add.u64 %d, %d, %x; ld.global.u8 %v, [%d];"
    "ld.global.s8 %w, [%d+1]; mad.lo.s32 %v, %v, 256, %w; " + STORE,
    "halves": "mad.wide.u32 %d, %i, 2, %x; ld.global.u16 %h, [%d]; cvt.u32.u16 %v, %h; " + STORE,
    "products of signed halves": "cvt.s32.s16 %k, %i; mad.wide.u32 %d, %i, 2, %x;"
    "ld.global.s16 %l, [%d]; mul.lo.s32 %l, %l, %k; shr.u32 %l, %l, 16; cvt.u16.u32 %h, %l;"
    "mad.wide.u32 %e, %i, 2, %y; st.global.u16 [%e], %h; ret; }",
    "floats": "ld.global.f32 %f, [%at]; mul.f32 %g, %f, 0f3FC00000; fma.rn.f32 %g, %g, %f, %f;"
    "sqrt.rn.f32 %g, %g; div.rn.f32 %f, %f, %g; ex2.approx.f32 %f, %f; mov.b32 %v, %f; " + STORE,
    "backwards": "sub.u32 %w, 4095, %i; mad.wide.u32 %d, %w, 4, %x; ld.global.u32 %v, [%d];"
    + STORE,
    "every third": "mul.lo.u32 %w, %i, 3; mad.wide.u32 %d, %w, 4, %x; ld.global.u32 %v, [%d];"
    + STORE,
    "a gather": "mul.lo.u32 %w, %i, %i; and.b32 %w, %w, 4095; mad.wide.u32 %d, %w, 4, %x;"
    "ld.global.u32 %v, [%d]; " + STORE,
    "one for all": "ld.global.u32 %v, [%x+64]; add.u32 %v, %v, %i; " + STORE,
    "a mask": "ld.global.u32 %v, [%at]; and.b32 %w, %v, 1; setp.eq.u32 %p, %w, 0;"
    "@%p ld.global.u32 %v, [%at+4]; @!%p add.u32 %v, %v, 1000; st.global.u32 [%to], %v;"
    "@%p st.global.u32 [%to], %i; ret; }",
    "a selection": "ld.global.u32 %v, [%at]; setp.gt.s32 %p, %v, %i; setp.lt.or.s32 %q, %v, 9, %p;"
    "selp.b32 %v, %v, %i, %q; @%p not.b32 %v, %v; " + STORE,
    "divergence": "ld.global.u32 %v, [%at]; and.b32 %w, %v, 3; setp.eq.u32 %p, %w, 0; @%p bra odd;"
    "add.u32 %v, %v, 17; odd: mul.lo.u32 %v, %v, 3; " + STORE,
    "half a group goes": "and.b32 %w, %i, 16; setp.eq.u32 %p, %w, 0; mov.u32 %v, 5; @%p ret; "
    + STORE,
    "a loop of each": "and.b32 %k, %i, 7; mov.u32 %v, 0;"
    "again: add.u32 %v, %v, %i; sub.u32 %k, %k, 1; setp.gt.s32 %p, %k, 0; @%p bra again; " + STORE,
    "a loop of all": "mov.u32 %k, 9; ld.global.u32 %v, [%at]; mov.b64 %d, %at;"
    "again: ld.global.u32 %w, [%d]; mad.lo.u32 %v, %v, 5, %w; add.u64 %d, %d, 128;"
    "sub.u32 %k, %k, 1; setp.gt.s32 %p, %k, 0; @%p bra again; " + STORE,
    "a switch of all": "and.b32 %w, %n, 3; t: .branchtargets a, b, a, b; brx.idx %w, t;"
    "a: mov.u32 %v, 1; bra c; b: mov.u32 %v, 2; c: add.u32 %v, %v, %i; " + STORE,
    "a switch of each": "and.b32 %w, %i, 3; t: .branchtargets a, b, a, b; brx.idx %w, t;"
    "a: mov.u32 %v, 1; bra c; b: mov.u32 %v, 2; c: add.u32 %v, %v, %i; " + STORE,
    "own memory": "and.b32 %w, %i, 1; shl.b32 %w, %w, 3; st.local.u32 [own], %i;"
    "st.local.u32 [own+4], %w; st.local.u32 [own+8], %t; mov.u32 %k, own; add.u32 %k, %k, %w;"
    "ld.local.u32 %v, [%k]; ld.local.u32 %w, [own]; mad.lo.u32 %v, %v, 7, %w; " + STORE,
    "places of threads": "mov.u32 %v, %laneid; mov.u32 %w, %warpid; mad.lo.u32 %v, %w, 64, %v;"
    "mov.u32 %w, %lanemask_lt; xor.b32 %v, %v, %w; mov.u32 %w, %tid.y; mad.lo.u32 %v, %w, 9, %v; "
    + STORE,
    "carries": "ld.global.u32 %v, [%at]; add.cc.u32 %v, %v, 0x80000000; addc.u32 %v, %i, 0; "
    + STORE,
    "halves of a word": "mul.wide.u32 %d, %i, 3; mov.b64 {%l, %m}, %d; mad.lo.u32 %v, %m, 77, %l;"
    + STORE,
    "signs and shifts": "mul.lo.s32 %s6, %i, -3; shl.b32 %s7, %s6, 2; sub.s32 %s8, %n, %s7;"
    "mad.wide.s32 %d, %s8, -2, 5; cvt.u32.u64 %k, %d; cvt.s64.s32 %e, %s6; mov.b64 {%l, %m}, %e;"
    "add.sat.s32 %w, %l, %k; xor.b32 %w, %w, %m; mad.lo.u32 %v, %w, 7, %s8; " + STORE,
    "counts": "and.b32 %w, %i, 31; mad.wide.u32 %d, %w, 4, %y; red.global.add.u32 [%d], %i; ret; }",
}
# These meet at barriers, so all threads of a block must arrive.
MEETINGS = {
    "a neighbor's": "not.b32 %w, %i; st.shared.u32 [%b], %w; bar.sync 0;"
    "and.b32 %k, %t, -2; shl.b32 %k, %k, 2; ld.shared.u32 %v, [%k]; " + STORE,
    "a loop of barriers": "mov.u32 %v, %i; mov.u32 %k, 5; mul.lo.u32 %w, %t, 8;"
    "again: st.shared.v2.u32 [%w], {%v, %k}; bar.sync 0; ld.shared.u32 %l, [4];"
    "ld.shared.u32 %m, [%w]; mad.lo.u32 %v, %l, %m, %v; bar.sync 0;"
    "sub.u32 %k, %k, 1; setp.gt.s32 %p, %k, 0; @%p bra again; " + STORE,
    "copies": "cp.async.ca.shared.global [%b], [%at], 4; cp.async.wait_all; bar.sync 0;"
    "and.b32 %k, %t, -4; shl.b32 %k, %k, 2; ld.shared.u32 %v, [%k]; not.b32 %v, %v; " + STORE,
    "a mean of some": "setp.lt.u32 %q, %t, 40; not.b32 %w, %i; @!%q bra on; st.shared.u32 [%b], %w;"
    "on: bar.sync 0; mov.u32 %v, 3; @!%q bra end; ld.shared.u32 %v, [%b]; end: " + STORE,
    "some store, then all sum": "mov.u32 %k, 3; ld.global.u32 %v, [%at]; setp.lt.u32 %q, %v, %i;"
    "mov.b32 %f, %v; add.u32 %l, %n, 3;"
    "again: and.b32 %m, %t, 1; setp.eq.u32 %p, %m, 0; st.shared.u32 [%b], %k; @%p bra on;"
    "st.shared.u32 [%b], %v; not.b32 %v, %v; on: bar.sync 0; and.b32 %w, %t, -2; shl.b32 %w, %w, 2;"
    "ld.shared.u32 %m, [%w]; mad.lo.u32 %v, %v, 5, %m; ld.shared.u32 %m, [%b];"
    "@%q add.u32 %v, %v, %l; add.f32 %f, %f, 0f3F800000; xor.b32 %v, %v, %m; bar.sync 0;"
    "sub.u32 %k, %k, 1; setp.gt.s32 %p, %k, 0; @%p bra again; mov.b32 %w, %f;"
    "xor.b32 %v, %v, %w; " + STORE,
    "numbers that differ at a barrier": "mov.u32 %k, 2; and.b32 %w, %t, 3; setp.lt.u32 %p, %w, 2;"
    "st.shared.u32 [%b], %i; @%p bra on; mov.u32 %k, 5; on: bar.sync 0; ld.shared.u32 %w, [0];"
    "mad.lo.u32 %v, %w, %t, %k; " + STORE,
    "steps that differ at a barrier": "and.b32 %w, %t, 3; setp.lt.u32 %p, %w, 2;"
    "mul.lo.u32 %l, %t, 6; st.shared.u32 [%b], %i; @%p bra on; add.u32 %l, %l, 9;"
    "on: bar.sync 0; ld.shared.u32 %w, [0]; mad.lo.u32 %v, %w, 5, %l; " + STORE,
    "votes at a barrier": "and.b32 %w, %t, 3; setp.eq.u32 %q, %w, 1; bar.red.popc.u32 %v, 0, %q; "
    + STORE,
    "lanes": "shl.b32 %v, %i, 1; shfl.sync.idx.b32 %v, %v, 0, 31, -1; bar.sync 0;"
    "setp.gt.u32 %q, %t, 37; mov.u32 %w, 1; @%q bra on; mov.u32 %w, 5; on: bar.sync 0;"
    "shfl.sync.up.b32 %k, %v, 2, 0, -1; mad.lo.u32 %v, %k, %w, %v; " + STORE,
}
# In these, threads of one group go different ways, or lanes meet.
APART = {"divergence", "half a group goes", "a loop of each", "a switch of each"}
APART |= {"votes at a barrier", "lanes"}
APART |= {"numbers that differ at a barrier", "steps that differ at a barrier"}
SHAPES = [(1,), (16,), (17,), (32,), (64,), (250,), (1000,), (16, 16), (48, 3), (20, 4), (8, 8)]


def engines(
    body: str,
    monkeypatch: pytest.MonkeyPatch,
    block: tuple[int, ...] = (32,),
    grid: int = 8,
    spare: int = 0,
    read_only: int = 0,
) -> tuple[list[Any], CompiledKernel]:
    """Return what each engine leaves and its fault, and the kernel in the compiled one.

    The last `spare` threads end at once, and the first `read_only` bytes of `y` are read-only.
    """
    random = np.random.default_rng(3)
    x = random.integers(0, 1 << 32, 16384, dtype="u8").astype("u4")
    x[::3] &= 0x3FFFFFFF  # as floats, these are finite
    size = grid * int(np.prod(block))
    ends: list[Any] = []
    for engine in ("numpy", "compiled"):
        monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", engine)
        y, fault = np.arange(5000, dtype="u4"), None
        device = Device()
        module = device.load(image_of(HEAD + body))
        arguments = pack(module.image, "k", (x, y, np.uint32(size - spare)))
        names = [NamedArray(y.ctypes.data, read_only, "argument 1")] if read_only else []
        ranges = [(a.ctypes.data, a.nbytes) for a in ((x,) if read_only else (x, y))]
        try:
            device.launch(module, "k", arguments, (grid,), block, ranges=ranges, read_only=names)
        except Fault as error:
            place = error.block, error.thread, error.line
            fault = (error.code, error.reason.partition(" 0x")[0], place)
        ends.append((y.tolist(), fault))
    return ends, compiled_kernel(module.code("k"))


@pytest.mark.parametrize("block", SHAPES, ids=str)
@pytest.mark.parametrize("name", [*BODIES, *MEETINGS])
def test_both_engines(name: str, block: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    grid = min(4096 // int(np.prod(block)), 40)
    spare = 5 if name in BODIES else 0
    ends, state = engines({**BODIES, **MEETINGS}[name], monkeypatch, block, grid, spare)
    assert state.ran == 1, state.why_not
    assert ends[0] == ends[1]
    assert ends[0] != (list(range(5000)), None)
    assert not state.apart


@pytest.mark.parametrize("name", [*BODIES, *MEETINGS])
def test_threads_run_side_by_side_until_they_part(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, state = engines({**BODIES, **MEETINGS}[name], monkeypatch)
    assert state.groups == (0 if name in APART else 8)


def test_threads_that_parted_run_side_by_side_after_a_barrier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends, state = engines(MEETINGS["some store, then all sum"], monkeypatch, (64,), 4)
    assert ends[0] == ends[1]
    assert state.groups == 4 * 2


def test_other_warps_stay_together_when_one_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    ends, state = engines(MEETINGS["a mean of some"], monkeypatch, (128,), 4)
    assert ends[0] == ends[1]
    assert state.groups == 4 * 3


# Faults of one thread in the middle of a group, after all have written.
FAULTY = {
    "past the end": "setp.eq.u32 %p, %i, 77; @%p add.u64 %to, %to, 65536;" + STORE,
    "far away": "mul.wide.u32 %d, %i, 4096; add.u64 %d, %d, %y; st.global.u32 [%d], %v; ret; }",
    "misaligned": "setp.eq.u32 %p, %i, 77; @%p add.u64 %to, %to, 2;" + STORE,
    "all misaligned": "st.global.u32 [%to+2], %v; ret; }",
    "shared": "shl.b32 %w, %t, 9; st.shared.u32 [%w], %i; ret; }",
    "undefined": "shl.b32 %w, %t, 3; setp.ne.u32 %q, %t, 13; @%q st.shared.u32 [%w], %i;"
    "bar.sync 0; ld.shared.u32 %v, [%w]; " + STORE,
    "all undefined": "st.shared.u32 [%b], %i; bar.sync 0; ld.shared.u32 %v, [%b+4]; " + STORE,
    "trap": "setp.eq.u32 %p, %i, 77; @%p trap; " + STORE,
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_the_numpy_engines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "ld.global.u32 %v, [%to]; mul.lo.u32 %v, %v, 3; st.global.u32 [%to], %v;" + FAULTY[name]
    ends, state = engines(body, monkeypatch, (64,), 4)
    assert state.ran == 0
    assert ends[0] == ends[1]
    assert ends[0][1] is not None


def test_a_group_does_not_write_a_read_only_page(monkeypatch: pytest.MonkeyPatch) -> None:
    ends, state = engines(BODIES["a sum"], monkeypatch, (256,), 16, read_only=16000)
    assert state.ran == 0
    assert ends[0] == ends[1]
    assert ends[0][1] is not None


@pytest.mark.parametrize(
    "body",
    [
        # An unsigned index wraps around within the first group, where a guard hides its value.
        "sub.u32 %w, %i, 5; mad.wide.u32 %d, %w, 4, %x; mov.u32 %v, 1; setp.lt.u32 %p, %i, 5;"
        "@!%p ld.global.u32 %v, [%d];" + STORE,
        "add.s32 %w, %i, 0x7FFFFFF0; cvt.s64.s32 %d, %w; shr.u64 %e, %d, 60; cvt.u32.u64 %v, %e;"
        + STORE,
    ],
)
def test_an_index_that_wraps_around(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group cannot run it: the launch starts again with threads one after the other."""
    before = "ld.global.u32 %v, [%to]; mul.lo.u32 %v, %v, 3; st.global.u32 [%to], %v;"
    ends, state = engines(before + body, monkeypatch, (64,), 4)
    assert ends[0] == ends[1]
    assert (state.ran, state.apart) == (1, True)


@pytest.mark.parametrize(
    "body",
    [
        "ld.global.u32 %v, [%to]; st.global.u32 [%to+4], %v; ret; }",
        (
            "not.b32 %w, %i; st.global.u32 [%to], %w; ld.global.u32 %v, [%to+4];"
            "st.global.u32 [%to+2048], %v; ret; }"
        ),
    ],
)
def test_a_warp_loads_and_stores_together(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As lanes of a GPU mostly do; programs from before Volta depend on it."""
    ends, state = engines(body, monkeypatch, grid=1)
    assert (state.ran, state.groups) == (1, 1)
    assert ends[0] == ends[1]


def test_a_group_writes_over_the_end_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page is saved, and put back when a thread of the last block traps."""
    body = (
        "mul.wide.u32 %d, %i, 16; add.u64 %d, %d, %y; st.global.v2.u32 [%d], {%i, %t};"
        "setp.eq.u32 %p, %i, 1000; @%p trap; ret; }"
    )
    ends, state = engines(body, monkeypatch, (250,), 5)
    assert state.ran == 0
    assert ends[0] == ends[1]
    assert "trap" in ends[0][1][1]


def test_a_very_long_kernel_has_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its compilation takes long enough."""
    body = "mul.lo.u32 %v, %v, %i; " * 3500
    ends, state = engines("mov.u32 %v, 3; " + body + STORE, monkeypatch)
    assert (state.ran, state.groups) == (1, 0)
    assert ends[0] == ends[1]
