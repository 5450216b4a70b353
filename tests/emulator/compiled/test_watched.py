"""Accesses to shared memory whose effect may depend on the order of threads, with `auto`.

The compiled engine runs them as long as no thread touches what another one does between two
barriers. Then every order gives one result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, compiled_kernel

if TYPE_CHECKING:
    from emulator_internals import CompiledKernel

pytestmark = [pytest.mark.needs("gcc"), pytest.mark.usefixtures("cold")]

HEAD = """
.version 8.7
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x) {
    .reg .pred %p; .reg .b16 %h; .reg .b32 %t, %n, %i, %s, %v, %w, %r; .reg .b64 %at, %g, %d;
    .shared .align 16 .b8 box[1024];
    mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %n, %t;
    ld.param.u64 %at, [x]; mad.wide.u32 %at, %i, 4, %at; mov.u32 %s, box; shl.b32 %r, %t, 2;
    add.u32 %s, %s, %r; ld.global.u32 %v, [%at];
"""
# The inclusive sums of 64 numbers.
SUMS = """
    st.volatile.shared.u32 [%s], %v; mov.u32 %n, 4;
again:
    bar.sync 0;
    setp.lt.u32 %p, %r, %n; mov.u32 %w, 0; sub.u32 %i, %s, %n;
    ld.volatile.shared.u32 %v, [%s]; @!%p ld.volatile.shared.u32 %w, [%i]; add.u32 %v, %v, %w;
    bar.sync 0;
    st.volatile.shared.u32 [%s], %v;
    shl.b32 %n, %n, 1; setp.lt.u32 %p, %n, 256; @%p bra again;
    st.global.u32 [%at], %v; ret; }
"""
END = "st.global.u32 [%at], %w; ret; }"


def run(body: str, monkeypatch: pytest.MonkeyPatch) -> tuple[CompiledKernel, Any]:
    """Launch a body before and after it is hot; return the second run, whose results agree."""
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "auto")
    device, module, ends = Device(), None, []
    for seconds in (0.0, 10.0):
        x = np.arange(512, dtype="u4") * 7 + 1
        if module is not None:
            module.code("k").seconds = seconds
        module = launch(HEAD + body, "k", x, grid=(8,), block=(64,), device=device, module=module)
        ends.append(x.tolist())
    assert module is not None
    assert ends[0] == ends[1]
    return compiled_kernel(module.code("k")), ends[1]


def test_volatile_accesses_between_barriers_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    state, x = run(SUMS, monkeypatch)
    assert (state.ran, state.why_not, state.ordered) == (1, "", "st.volatile.shared.u32")
    each = (np.arange(512) * 7 + 1).reshape(8, 64)
    np.testing.assert_array_equal(x, each.cumsum(axis=1).ravel())


ALONE = {
    "its own word": "st.volatile.shared.u32 [%s], %v; ld.volatile.shared.u32 %w, [%s];",
    "all read": (
        "setp.eq.u32 %p, %t, 5; mov.u32 %s, box; @%p st.volatile.shared.u32 [%s], %v; bar.sync 0; "
        "ld.volatile.shared.u32 %w, [%s];"
    ),
    "an exchange of its own word": (
        "st.shared.u32 [%s], %t; atom.shared.exch.b32 %w, [%s], %v; ld.shared.u32 %v, [%s]; "
        "add.u32 %w, %w, %v;"
    ),
    "after all have read": (
        "st.volatile.shared.u32 [%s], %v; bar.sync 0; ld.volatile.shared.u32 %w, [box+4]; "
        "bar.sync 0; st.volatile.shared.u32 [%s], %w; bar.sync 0; "
        "ld.volatile.shared.u32 %w, [box+128];"
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_no_thread_touches_the_word_of_another(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state, _ = run(ALONE[name] + END, monkeypatch)
    assert (state.ran, state.why_not, state.groups) == (1, "", 0)


# Within the lanes of a warp, which the NumPy engine runs together.
TOGETHER = {
    "a write, then a read": (
        "st.shared.u32 [%s], %t; bar.sync 0; st.volatile.shared.u32 [%s], %v; "
        "mov.u32 %w, 0; setp.eq.u32 %p, %t, 63; "
        "@!%p ld.volatile.shared.u32 %w, [%s+4];"
    ),
    "a read, then a write": (
        "st.volatile.shared.u32 [%s], %v; bar.sync 0; mov.u32 %w, 0; setp.eq.u32 %p, %t, 63; "
        "@!%p ld.volatile.shared.u32 %w, [%s+4]; st.volatile.shared.u32 [%s], %t;"
    ),
    "two writes": (
        "st.volatile.shared.u32 [box], %v; bar.sync 0; ld.volatile.shared.u32 %w, [box];"
    ),
    "many reads, then a write": (
        "st.volatile.shared.u32 [%s], %v; bar.sync 0; ld.volatile.shared.u32 %w, [box]; "
        "setp.eq.u32 %p, %t, 63; @%p st.volatile.shared.u32 [box], %t;"
    ),
    "exchanges of one word": (
        "setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [box], 1; bar.sync 0; "
        "atom.shared.exch.b32 %w, [box], %v;"
    ),
    "a barrier of some threads": (
        "st.volatile.shared.u32 [%s], %v; bar.warp.sync -1; and.b32 %r, %r, 124; mov.u32 %w, 0;"
        "setp.eq.u32 %p, %r, 124; @!%p ld.volatile.shared.u32 %w, [%s+4];"
    ),
    "a barrier of one warp, with the other one at its end": (
        "st.volatile.shared.u32 [%s], %v; setp.ge.u32 %p, %t, 32; @%p exit; bar.sync 1, 32; "
        "ld.volatile.shared.u32 %w, [%s+128];"
    ),
    "an address without a space": (
        "st.shared.u32 [%s], %t; bar.sync 0; st.volatile.shared.u32 [%s], %v; "
        "cvt.u64.u32 %d, %s; cvta.shared.u64 %g, %d; "
        "mov.u32 %w, 0; setp.eq.u32 %p, %t, 63; @!%p ld.u32 %w, [%g+4];"
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_the_order_of_threads_matters(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the NumPy engine runs it, before and after it is hot."""
    state, _ = run(TOGETHER[name] + END, monkeypatch)
    assert state.ran == 0
    assert "only the NumPy engine handles" in state.why_not


def test_other_memory_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    state, _ = run(
        f"st.volatile.shared.u32 [%s], %v; ld.volatile.global.u32 %w, [%at];{END}", monkeypatch
    )
    assert (state.ran, state.why_not, state.watches) == (0, "", False)
