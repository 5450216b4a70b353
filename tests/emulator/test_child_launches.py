"""Kernels that launch kernels: their order, their arguments, and the reports of their faults."""

from __future__ import annotations

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault, Result

STREAM, TAIL, FIRE_AND_FORGET = 0, 3, 4
HEAD = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) cudaGetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12],
                                                       .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);
// log[log[0]++ + 1] = tag: runs are one after the other.
.visible .entry note(.param .u64 log, .param .u32 tag) {
.reg .b64 %at, %to; .reg .b32 %n, %tag;
ld.param.u64 %at, [log]; ld.param.u32 %tag, [tag]; ld.global.u32 %n, [%at]; add.u32 %n, %n, 1;
st.global.u32 [%at], %n; mad.wide.u32 %to, %n, 4, %at; st.global.u32 [%to], %tag; ret;
}
// place[i] = i for each thread of a grid of three dimensions; the block has its number in shared
// memory of the launch.
.extern .shared .align 4 .b8 box[];
.visible .entry fill(.param .u64 out) {
.reg .b64 %at, %to; .reg .b32 %i, %n, %r;
mov.u32 %i, %ctaid.z; mov.u32 %n, %nctaid.y; mov.u32 %r, %ctaid.y; mad.lo.u32 %i, %i, %n, %r;
mov.u32 %n, %nctaid.x; mov.u32 %r, %ctaid.x; mad.lo.u32 %i, %i, %n, %r; mov.u32 %n, box;
st.shared.u32 [%n+60], %i; ld.shared.u32 %i, [%n+60];
mov.u32 %n, %ntid.y; mov.u32 %r, %tid.y; mad.lo.u32 %i, %i, %n, %r;
mov.u32 %n, %ntid.x; mov.u32 %r, %tid.x; mad.lo.u32 %i, %i, %n, %r;
ld.param.u64 %at, [out]; mad.wide.u32 %to, %i, 4, %at; st.global.u32 [%to], %i; ret;
}
.visible .entry deep(.param .u64 log, .param .u32 tag) {
REGISTERS ld.param.u64 %at, [log]; ld.param.u32 %tag, [tag];
DEEP ret;
}
"""
REGISTERS = ".reg .b64 %at, %f, %buffer; .reg .b32 %tag, %code, %i; .reg .pred %p;"


def call(
    kernel: str,
    arguments: str,
    stream: int = STREAM,
    grid: tuple[int, ...] = (1, 1, 1),
    block: tuple[int, ...] = (1, 1, 1),
    shared: int = 0,
) -> str:
    """Return PTX that launches; `arguments` stores to ``[%buffer]``."""
    extents = "".join(
        f"st.param.b32 [{name}+{4 * i}], {size};"
        for name, sizes in (("pg", grid), ("pb", block))
        for i, size in enumerate(sizes)
    )
    return f"""{{
mov.u64 %f, {kernel}; .param .b64 pf, pr, pp, ps; .param .align 4 .b8 pg[12];
.param .align 4 .b8 pb[12]; .param .b32 pm, pc; st.param.b64 [pf], %f; {extents}
st.param.b32 [pm], {shared}; call.uni (pr), cudaGetParameterBufferV2, (pf, pg, pb, pm);
ld.param.b64 %buffer, [pr]; {arguments} st.param.b64 [pp], %buffer; st.param.b64 [ps], {stream};
call.uni (pc), cudaLaunchDeviceV2, (pp, ps); ld.param.b32 %code, [pc]; }}
"""


def note(tag: int | str, stream: int = STREAM, kernel: str = "note") -> str:
    given = f"mov.u32 %code, {tag};"
    store = "st.global.u64 [%buffer], %at; st.global.u32 [%buffer+8], %code;"
    return call(kernel, given + store, stream)


def ptx_of(body: str, deep: str = "") -> str:
    text = HEAD.replace("REGISTERS", REGISTERS).replace("DEEP", deep)
    parent = f".visible .entry parent(.param .u64 log) {{ {REGISTERS} ld.param.u64 %at, [log];"
    return f"{text}\n{parent}\n{body}\nret; }}"


def log_of(body: str, deep: str = "", threads: int = 1) -> list[int]:
    log = np.zeros(64, "u4")
    launch(ptx_of(body, deep), "parent", log, block=(threads,))
    return log[1 : 1 + log[0]].tolist()


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_children_run_after_the_grid_in_the_order_of_their_launches(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", engine)
    # The parent writes the log's first entry after its launches.
    own = "mov.u32 %i, 1; st.global.u32 [%at], %i; st.global.u32 [%at+4], %i;"
    body = note(7, TAIL) + note(2) + note(3, FIRE_AND_FORGET) + note(4) + own
    assert log_of(body) == [1, 2, 3, 4, 7]


def test_every_thread_launches_its_own() -> None:
    body = "mov.u32 %tag, %tid.x; setp.eq.u32 %p, %tag, 1; @%p bra END;" + note("%tag") + "END:"
    assert log_of(body, threads=4) == [0, 2, 3]


def test_a_tail_launch_waits_for_the_children_of_children() -> None:
    deep = note("%tag") + note(6, TAIL) + note(5)
    body = note(9, TAIL) + note(4, kernel="deep") + note(8)
    assert log_of(body, deep) == [4, 5, 6, 8, 9]


def test_the_grid_the_block_and_the_shared_memory() -> None:
    out = np.full(2 * 3 * 2 * 4 * 2, 99, "u4")
    store = "st.global.u64 [%buffer], %at;"
    body = call("fill", store, grid=(2, 3, 2), block=(4, 2, 1), shared=64)
    launch(ptx_of(body), "parent", out)
    assert out.tolist() == list(range(96))


def test_a_fault_of_a_child_names_the_thread_that_launched_it() -> None:
    store = "mov.u64 %at, 64; st.global.u64 [%buffer], %at;"
    device = Device()
    with pytest.raises(Fault) as caught:
        launch(ptx_of(call("note", store)), "parent", np.zeros(4, "u4"), block=(1,), device=device)
    fault = caught.value
    assert (fault.code, fault.kernel) == (Result.ILLEGAL_ADDRESS, "note")
    assert "launched by block (0, 0, 0), thread (0, 0, 0) at PTX line" in str(fault)
    assert "cudaLaunchDeviceV2" in fault.related[0].position.text
    assert "launched by" in str(device.fault)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (note(1).replace("mov.u64 %f, note", "mov.u64 %f, 77"), "is not a kernel's"),
        (
            note(1) + "{ .param .b64 pp, ps; .param .b32 pc; st.param.b64 [pp], %buffer;"
            "st.param.b64 [ps], 0; call.uni (pc), cudaLaunchDeviceV2, (pp, ps); }",
            "which is not a parameter buffer, or one that was launched",
        ),
        (call("note", "", block=(2000, 1, 1)), "the block (2000, 1, 1) exceeds"),
        (call("fill", "", shared=1 << 20), "of dynamic shared memory"),
    ],
)
def test_an_invalid_launch(body: str, reason: str) -> None:
    with pytest.raises(Fault) as caught:
        log_of(body)
    assert caught.value.code == Result.LAUNCH_FAILED
    assert reason in str(caught.value)


def test_kernels_that_launch_themselves_reach_a_limit() -> None:
    with pytest.raises(Fault, match="kernels launch each other more than 24 times in a row"):
        log_of(note(1, kernel="deep"), note("%tag", kernel="deep"))


def test_a_parent_that_fails_has_no_children() -> None:
    log = np.zeros(64, "u4")
    with pytest.raises(Fault, match="executed trap"):
        launch(ptx_of(note(1) + "trap;"), "parent", log, block=(1,))
    assert log[0] == 0
