"""st.async: stores to another block of a cluster, which its mbarrier counts."""

from __future__ import annotations

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault, Options

import culaunch as cl
from culaunch import testing

# Each block of a cluster of two sends 64 pairs to the other one, which waits for 512 bytes.
TEXT = """.version 8.1
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {{
.shared .align 16 .b8 box[512]; .shared .align 8 .b64 bar;
.reg .b32 %t, %r, %at, %to, %a, %b; .reg .b64 %o, %w, %g; .reg .pred %p, %ok;
mov.u32 %t, %tid.x; mov.u32 %r, %cluster_ctarank; setp.eq.u32 %p, %t, 0;
mov.u32 %at, bar; @%p mbarrier.init.shared::cta.b64 [%at], 1;
@%p mbarrier.arrive.expect_tx.shared::cta.b64 %w, [%at], 512;
barrier.cluster.arrive; barrier.cluster.wait;
xor.b32 %a, %r, 1; mapa.shared::cluster.u32 %to, %at, %a;
mov.u32 %b, box; mad.lo.u32 %b, %t, 8, %b; mapa.shared::cluster.u32 %b, %b, %a;
mad.lo.u32 %a, %r, 1000, %t;
{store}
mov.u32 %b, box; mad.lo.u32 %b, %t, 8, %b;
wait: {wait} ld.shared.v2.b32 {{%a, %b}}, [%b];
mad.lo.u32 %t, %r, 64, %t; ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 8, %o;
st.global.v2.b32 [%o], {{%a, %b}};
barrier.cluster.arrive; barrier.cluster.wait; ret; }}"""
WAIT = "mbarrier.try_wait.parity.shared::cta.b64 %ok, [%at], 0; @!%ok bra wait;"
STORE = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
PAIR = f"{STORE}.v2.b32 [%b], {{%a, %t}}, [%to];"
WORD = f"mov.b64 %w, {{%a, %t}}; {STORE}.b64 [%b], %w, [%to];"
GENERIC = (
    "cvt.u64.u32 %o, %b; cvta.shared.u64 %o, %o; cvt.u64.u32 %w, %to; cvta.shared.u64 %w, %w;"
    "st.async.mbarrier::complete_tx::bytes.v2.s32 [%o], {%a, %t}, [%w];"
)


def run(store: str, wait: str = WAIT, **options: bool) -> np.ndarray:
    out = np.zeros((2, 64, 2), "u4")
    text = TEXT.format(store=store, wait=wait)
    device = Device("sm_90", options=Options(**options))
    launch(text, "k", out, device=device, block=(64,), grid=(2,), cluster=(2,))
    return out


RANK, THREAD = np.indices((2, 64))
EXPECTED = np.stack([(1 - RANK) * 1000 + THREAD, THREAD], axis=2)
stores = pytest.mark.parametrize("store", [PAIR, WORD, GENERIC], ids=["pair", "word", "generic"])


@stores
@pytest.mark.parametrize("races", [False, True])
def test_a_block_waits_for_the_stores_of_another(store: str, races: bool) -> None:
    np.testing.assert_array_equal(run(store, check_races=races), EXPECTED)


@pytest.mark.gpu
@stores
def test_on_the_gpu_a_block_waits_for_the_stores_of_another(store: str) -> None:
    text = TEXT.format(store=store, wait=WAIT)
    with testing.use_driver("cuda"), cl.load(text.encode()) as module:
        out = cl.zeros((2, 64, 2), "uint32")
        module["k"].launch(out, grid=2, block=64, cluster=2)
        np.testing.assert_array_equal(out.numpy(), EXPECTED)


def test_who_does_not_wait_races() -> None:
    with pytest.raises(Fault, match="race: "):
        run(PAIR, wait="", check_races=True)


def test_a_store_without_an_mbarrier_is_not_emulated() -> None:
    with pytest.raises(Fault, match="a store without an mbarrier"):
        run("st.async.mmio.release.sys.global.b32 [%o], %a;")
