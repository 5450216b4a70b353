"""tcgen05: products of every kind and layout against float64, and moves of tensor memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault, Options
from matrix_layout import ROWS
from tcgen05_products import HEAD, describe, kernel, multiply

CASES = [
    ("f16", "f16", "f16", 0), ("f16", "bf16", "bf16", 0), ("tf32", "tf32", "tf32", 0),
    ("f8f6f4", "e4m3", "e5m2", 0), ("f8f6f4", "e2m3", "e3m2", 0), ("f8f6f4", "e2m1", "e4m3", 0),
    ("mxf8f6f4", "e5m2", "e2m1", 1), ("mxf8f6f4", "e3m2", "e4m3", 1), ("mxf4", "e2m1", "e2m1", 2),
    ("mxf4nvf4", "e2m1", "e2m1", 2), ("mxf4nvf4", "e2m1", "e2m1", 4),
]  # fmt: skip


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(("kind", "a", "b", "vector"), CASES)
@pytest.mark.parametrize("swizzle", ROWS)
def test_products_of_every_kind(kind: str, a: str, b: str, vector: int, swizzle: str) -> None:
    out, expected = multiply(kind, a, b, vector=vector, swizzle=swizzle)
    np.testing.assert_array_equal(out.view("f4")[:, :64], expected.astype("f4"))


def test_scales_with_a_mantissa_type() -> None:
    out, expected = multiply("mxf4nvf4", "e2m1", "e2m1", vector=4, scale="ue4m3")
    np.testing.assert_array_equal(out.view("f4")[:, :64], expected.astype("f4"))


def test_integers() -> None:
    out, expected = multiply("i8", "u8", "s8", d=2)
    np.testing.assert_array_equal(out.view("i4")[:, :64], expected.astype("i4"))


@pytest.mark.needs("ml_dtypes")
def test_sums_of_f16_are_in_the_lower_half() -> None:
    out, expected = multiply("f16", "f16", "f16", d=0)
    np.testing.assert_array_equal(out[:, :64], expected.astype("f2").view("u2"))


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize("turned", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("swizzle", ROWS)
def test_transposed_and_negated(swizzle: str, turned: tuple[bool, bool]) -> None:
    out, expected = multiply("f16", "f16", "f16", swizzle=swizzle, turned=turned, signs=(1, 0))
    np.testing.assert_array_equal(out.view("f4")[:, :64], expected.astype("f4"))


@pytest.mark.needs("ml_dtypes")
@pytest.mark.parametrize(("m", "ws"), [(64, False), (128, True), (64, True), (32, True)])
def test_places_of_fewer_rows(m: int, ws: bool) -> None:
    out, expected = multiply("f16", "f16", "f16", m=m, n=128, ws=ws)
    got = out.view("f4")
    for row in range(m):
        for column in range(0, 128, 5):
            lane, at = row // 16 * 32 + row % 16, column
            if ws:
                wide = 128 * m // 128
                lane, at = row + column // wide * m, column % wide
            assert got[lane, at] == expected[row, column], (row, column)


MOVES = {
    "32x32b": (1, lambda t, r: (t, r)),
    "16x64b": (1, lambda t, r: (t // 4 + 8 * (t // 2 % 2), t % 2 + 2 * r)),
    "16x128b": (2, lambda t, r: (t // 4 + 8 * (r % 2), t % 4 + r // 2 * 4)),
    "16x256b": (4, lambda t, r: (t // 4 + 8 * (r // 2 % 2), t % 4 * 2 + r % 2 + r // 4 * 8)),
    "16x32bx2": (1, lambda t, r: (t % 16, r + 16 * (t // 16))),
}


def move(
    body: str, out: np.ndarray, *, threads: int = 32, shared: int = 512, **options: Any
) -> None:
    """Run code with 64 columns at %i, and registers %v0 to %v31 that hold thread * 32 + number."""
    fill = " ".join(f"mad.lo.u32 %v{i}, %t, 32, {i};" for i in range(32))
    dump = " ".join(f"st.global.b32 [%at+{4 * i}], %w{i};" for i in range(32))
    text = f"""{HEAD}
    .visible .entry k(.param .u64 out) {{ .reg .b32 %v<32>, %w<32>, %i, %t, %h; .reg .b64 %at;
    .reg .pred %p; mov.u32 %t, %tid.x; mov.u32 %h, box; {fill} setp.lt.u32 %p, %t, 32;
    @%p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%h], 64;
    bar.sync 0; ld.shared.b32 %i, [%h]; {body}
    ld.param.u64 %at, [out]; mad.wide.u32 %at, %t, 128, %at; {dump} bar.sync 0;
    @%p tcgen05.dealloc.cta_group::1.sync.aligned.b32 %i, 64; ret; }}"""
    device = Device("sm_100", Options(**options))
    launch(text, "k", out, device=device, block=(threads,), shared=shared)


def names(letter: str, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


@pytest.mark.parametrize("shape", MOVES)
def test_a_store_of_a_shape_is_a_load_of_another(shape: str) -> None:
    size, where = MOVES[shape]
    count = 16 // size
    split = ", 16" if shape == "16x32bx2" else ""
    out = np.zeros((32, 32), "u4")
    zero = "mov.b32 %v31, 0; " + "tcgen05.st.sync.aligned.32x32b.x32.b32 [%i], {"
    zero += ", ".join(["%v31"] * 32) + "};"
    move(
        f"{zero} tcgen05.st.sync.aligned.{shape}.x{count}.b32 [%i]{split}, {names('v', 16)};"
        f"tcgen05.ld.sync.aligned.32x32b.x32.b32 {names('w', 32)}, [%i];",
        out,
    )
    expected = np.zeros((32, 32), "u4")
    for thread in range(32):
        for register in range(16):
            expected[where(thread, register)] = thread * 32 + register
    np.testing.assert_array_equal(out, expected)
    back = np.zeros((32, 32), "u4")
    move(
        f"tcgen05.st.sync.aligned.{shape}.x{count}.b32 [%i]{split}, {names('v', 16)};"
        f"tcgen05.ld.sync.aligned.{shape}.x{count}.b32 {names('w', 16)}, [%i]{split};",
        back,
    )
    number = np.arange(32)[:, None] * 32 + np.arange(16)
    np.testing.assert_array_equal(back[:, :16], number)


def test_pack_and_unpack() -> None:
    out = np.zeros((32, 32), "u4")
    move(
        "mov.b32 %v0, 0x70005;"
        "tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%i], {%v0, %v1};"
        f"tcgen05.ld.sync.aligned.32x32b.x4.b32 {names('w', 4)}, [%i];"
        "tcgen05.ld.sync.aligned.32x32b.x1.pack::16b.b32 {%w4}, [%i];",
        out,
    )
    np.testing.assert_array_equal(out[:, [0, 1, 4]], np.full((32, 3), [5, 7, 0x70005]))
    np.testing.assert_array_equal(out[:, 2], np.arange(32) * 32 + 1)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("min.f32", 0xC0600000), ("max.f32", 0x3F800000), ("max.abs.f32", 0x40600000),
        ("min.abs.NaN.f32", 0x7FFFFFFF), ("min.s32", 0xC0600000), ("max.u32", 0xC0600000),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("shape", "split"), [("32x32b", ""), ("16x32bx2", ", 16")])
def test_a_load_with_the_extreme_of_each_lane(
    op: str, expected: int, shape: str, split: str
) -> None:
    out = np.zeros((32, 32), "u4")
    values = 0xC0000000, 0x3F800000, 0x7FC00001 if "NaN" in op else 0x3F000000, 0xC0600000
    if op == "min.s32":
        values = 5, 0xC0600000, 0xFFFFFFFF, 7
    fill = " ".join(f"mov.b32 %v{i}, {value};" for i, value in enumerate(values))
    move(
        f"{fill} tcgen05.st.sync.aligned.{shape}.x4.b32 [%i]{split}, {names('v', 4)};"
        f"tcgen05.ld.red.sync.aligned.{shape}.x4.{op} {names('w', 4)}, %w4, [%i]{split};",
        out,
    )
    np.testing.assert_array_equal(out[:, :5], np.tile([*values, expected], (32, 1)))


def test_copies_from_shared_memory_reach_all_warps() -> None:
    out = np.zeros((128, 32), "u4")
    move(
        "mov.b64 %at, 0; cvt.u64.u32 %at, %h; shr.u64 %at, %at, 4;"
        f"or.b64 %at, %at, {1 << 46 | 128 >> 4 << 32 | 8 << 16}; mad.lo.u32 %v1, %t, 4, %h;"
        "bar.sync 0; st.shared.b32 [%v1], %t; bar.sync 0; setp.eq.u32 %p, %t, 0;"
        "@%p tcgen05.cp.cta_group::1.32x128b.warpx4 [%i], %at;"
        "setp.lt.u32 %p, %t, 32; bar.sync 0; and.b32 %v2, %t, 96; shl.b32 %v2, %v2, 16;"
        "add.u32 %v2, %v2, %i;"
        f"tcgen05.ld.sync.aligned.32x32b.x4.b32 {names('w', 4)}, [%v2];",
        out,
        threads=128,
    )
    np.testing.assert_array_equal(out[:, :4], np.tile(np.arange(128).reshape(32, 4), (4, 1)))


@pytest.mark.parametrize("stored", [0, 96])
def test_lanes_below_32_count_from_the_warps_first_lane(stored: int) -> None:
    """DeepGEMM passes lanes 0 and 16 in every warp, as a GPU allows."""
    own = "and.b32 %v31, %t, {}; shl.b32 %v31, %v31, 16; add.u32 %v31, %v31, %i;"
    out = np.zeros((128, 32), "u4")
    move(
        f"{own.format(stored)} tcgen05.st.sync.aligned.32x32b.x8.b32 [%v31], {names('v', 8)};"
        f"{own.format(96 - stored)}"
        "tcgen05.ld.sync.aligned.16x256b.x1.b32 {%w0, %w1, %w2, %w3}, [%v31];"
        "add.u32 %v31, %v31, 0x100000;"
        "tcgen05.ld.sync.aligned.16x256b.x1.b32 {%w4, %w5, %w6, %w7}, [%v31];",
        out,
        threads=128,
    )
    thread, register = np.indices((128, 8))
    row = thread // 32 * 32 + thread % 32 // 4 + 8 * (register // 2)
    np.testing.assert_array_equal(out[:, :8], row * 32 + thread % 4 * 2 + register % 2)


LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%w0}, [%i];"
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%h], "
RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"add.u32 %i, %i, 64; {LOAD}", "column 64 is not"),
        (f"add.u32 %i, %i, 0x200000; {LOAD}", "lanes 0 to"),
        ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %i, 32;", "not an allocation of that size"),
        ("ret;", "exits with 64 columns"),
        (f"{RELINQUISH} {ALLOC} 32;", "has relinquished"),
        (f"{ALLOC} 48;", "got 48"),
        (f"{ALLOC} 512;", "holds 64 of 512"),
    ],
)
def test_misuse_is_a_fault(body: str, message: str) -> None:
    with pytest.raises(Fault, match=message):
        move(body, np.zeros((32, 32), "u4"))


def test_the_warp_that_allocates_reads_the_address() -> None:
    out = np.zeros((32, 32), "u4")
    body = f"{ALLOC} 32; ld.shared.b32 %w0, [%h]; setp.ne.u32 %p, %w0, 0; @!%p trap;"
    dealloc = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %w0, 32;"
    # The first allocation is of 64 columns, for which the block has a barrier.
    move(f"bar.sync 0; {body} {dealloc} mov.pred %p, 1;", out, check_races=True)
    assert out[:, 0].tolist() == [64] * 32


PAIR = f"""{HEAD}
.visible .entry k(.param .u64 out, .param .u32 word, .param .u32 lanes) .reqnctapercluster 2, 1, 1
{{ .reg .b32 %w<16>, %v<16>, %i, %t, %h, %c, %u, %word; .reg .b64 %at, %left, %right;
.reg .pred %p, %one, %q; .reg .b16 %m;
mov.u32 %t, %tid.x; mov.u32 %h, box; mov.u32 %c, %ctaid.x; setp.lt.u32 %p, %t, 32;
setp.eq.u32 %one, %t, 0; @%one mbarrier.init.shared.b64 [%h+8], 1;
@%p tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%h], 64;
mad.lo.u32 %u, %t, 32, %h; mad.lo.u32 %v0, %c, 128, %t; and.b32 %v0, %v0, 15;
cvt.rn.f32.u32 %v0, %v0; mov.b32 %v1, 0;
st.shared.v4.b32 [%u+1024], {{%v0, %v1, %v1, %v1}};
st.shared.v4.b32 [%u+1040], {{%v0, %v1, %v1, %v1}};
add.u32 %u, %t, 1; mad.lo.u32 %u, %c, 100, %u; cvt.rn.f32.u32 %v0, %u; mad.lo.u32 %u, %t, 32, %h;
st.shared.v4.b32 [%u+8192], {{%v0, %v1, %v1, %v1}};
st.shared.v4.b32 [%u+8208], {{%v0, %v1, %v1, %v1}};
fence.proxy.async.shared::cta; barrier.cluster.arrive; barrier.cluster.wait;
ld.shared.b32 %i, [%h]; add.u32 %u, %h, 1024; shr.u32 %u, %u, 4; cvt.u64.u32 %left, %u;
or.b64 %left, %left, {1 << 46 | 256 >> 4 << 32 | 6 << 61};
add.u32 %u, %h, 8192; shr.u32 %u, %u, 4; cvt.u64.u32 %right, %u;
or.b64 %right, %right, {1 << 46 | 256 >> 4 << 32 | 6 << 61};
ld.param.u32 %word, [word]; setp.eq.u32 %q, %c, 0; and.pred %one, %one, %q; setp.ne.u32 %q, %t, %t;
mov.b16 %m, 3;
@%one tcgen05.mma.cta_group::2.kind::tf32 [%i], %left, %right, %word, %q;
@%one tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64
    [%h+8], %m;
WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%h+8], 0; @!%q bra WAIT;
and.b32 %u, %t, 96; shl.b32 %u, %u, 16; add.u32 %u, %u, %i;
tcgen05.ld.sync.aligned.32x32b.x16.b32 {names("w", 16)}, [%u]; tcgen05.wait::ld.sync.aligned;
mad.lo.u32 %t, %c, 128, %t; ld.param.u64 %at, [out]; mad.wide.u32 %at, %t, 64, %at;
{" ".join(f"st.global.b32 [%at+{4 * i}], %w{i};" for i in range(16))}
barrier.cluster.arrive; barrier.cluster.wait;
@%p tcgen05.dealloc.cta_group::2.sync.aligned.b32 %i, 64; ret; }}"""


@pytest.mark.parametrize("m", [256, 128])
@pytest.mark.parametrize("races", [False, True])
def test_a_pair_of_blocks_shares_a_product(m: int, races: bool) -> None:
    # A[r, 0] is r mod 16 in the block of its row; B[c, 0] names the block and the row there.
    # Both chunks of a row have the same value, since the swizzle exchanges them: so A[r, 4] too.
    n = 16 if m == 256 else 32
    out = np.zeros((2, 128, 16), "f4")
    word = np.uint32(1 << 4 | 2 << 7 | 2 << 10 | n >> 3 << 17 | m >> 4 << 24)
    device = Device("sm_100", Options(check_races=races))
    launch(PAIR, "k", out, word, np.uint32(0), grid=(2,), cluster=(2,), block=(128,),
           shared=16384, device=device)  # fmt: skip
    half = n // 2
    columns = np.array([1 + c % half + 100 * (c // half) for c in range(n)], "f4")
    rows = np.arange(128, dtype="f4") % 16
    if m == 256:
        expected = np.stack([2 * rows[:, None] * columns] * 2)
    else:
        lower = 2 * rows[:64, None] * columns
        expected = np.stack([np.concatenate([lower[:, :16], lower[:, 16:]])] * 2)
    np.testing.assert_array_equal(out, expected)


def test_a_from_tensor_memory() -> None:
    out = np.zeros((128, 32), "u4")
    body = f"""
    mov.b32 %v31, 0f3F800000; mad.lo.u32 %v30, %t, 4, %h; st.shared.b32 [%v30], %v31; bar.sync 0;
    and.b32 %v2, %t, 96; shl.b32 %v2, %v2, 16; add.u32 %v2, %v2, %i; cvt.rn.f32.u32 %v3, %t;
    mov.b32 %v4, 0; bar.sync 0;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%v2], {{%v3, %v3, %v4, %v4, %v4, %v4, %v4, %v4}};
    bar.sync 0; shr.u32 %v5, %h, 4; cvt.u64.u32 %at, %v5;
    or.b64 %at, %at, {1 << 46 | 8 << 16 | 16 << 32};
    mov.b32 %v6, {1 << 4 | 2 << 7 | 2 << 10 | 2 << 17 | 8 << 24}; setp.eq.u32 %p, %t, 0;
    add.u32 %v8, %i, 32; setp.ne.u32 %q, %t, %t;
    @%p tcgen05.mma.cta_group::1.kind::tf32 [%v8], [%i], %at, %v6, %q;
    bar.sync 0; setp.lt.u32 %p, %t, 32; add.u32 %v2, %v2, 32;
    tcgen05.ld.sync.aligned.32x32b.x16.b32 {names("w", 16)}, [%v2];
    """
    move(".reg .pred %q;" + body, out, threads=128)
    expected = np.repeat(2 * np.arange(128, dtype="f4")[:, None], 16, axis=1)
    np.testing.assert_array_equal(out[:, :16].view("f4"), expected)


@pytest.mark.parametrize(("m", "n"), [(64, 64), (32, 128)])
def test_lanes_multiply_their_own_rows_of_a(m: int, n: int) -> None:
    """FlashMLA multiplies two matrices at once: the lanes of further columns have another A."""
    out = np.zeros((128, 32), "u4")
    # A[lane, 0] is lane + 1, and B[column, 0] is column + 1. All else is zero.
    body = f"""
    mov.b32 %v4, 0; mad.lo.u32 %v30, %t, 32, %h; st.shared.v4.b32 [%v30], {{%v4, %v4, %v4, %v4}};
    st.shared.v4.b32 [%v30+16], {{%v4, %v4, %v4, %v4}}; bar.sync 0; add.u32 %v3, %t, 1;
    cvt.rn.f32.u32 %v3, %v3; shr.u32 %v5, %t, 3; and.b32 %v6, %t, 7; mad.lo.u32 %v30, %v5, 256, %h;
    mad.lo.u32 %v30, %v6, 16, %v30; st.shared.b32 [%v30], %v3; bar.sync 0;
    and.b32 %v2, %t, 96; shl.b32 %v2, %v2, 16; add.u32 %v2, %v2, %i;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%v2], {{%v3, %v4, %v4, %v4, %v4, %v4, %v4, %v4}};
    bar.sync 0; shr.u32 %v5, %h, 4; cvt.u64.u32 %at, %v5;
    or.b64 %at, %at, {1 << 46 | 8 << 16 | 16 << 32};
    mov.b32 %v6, {1 << 4 | 2 << 7 | 2 << 10 | n >> 3 << 17 | m >> 4 << 24};
    setp.eq.u32 %p, %t, 0; add.u32 %v8, %i, 32; setp.ne.u32 %q, %t, %t;
    @%p tcgen05.mma.ws.cta_group::1.kind::tf32 [%v8], [%i], %at, %v6, %q;
    bar.sync 0; setp.lt.u32 %p, %t, 32; add.u32 %v2, %v2, 32;
    tcgen05.ld.sync.aligned.32x32b.x32.b32 {names("w", 32)}, [%v2];
    """
    move(".reg .pred %q;" + body, out, threads=128, shared=4096)
    lane, column = np.indices((128, 32))
    expected = (lane + 1) * (column + 32 * (lane // m) + 1)
    np.testing.assert_array_equal(out.view("f4"), expected.astype("f4"))


@pytest.mark.needs("ml_dtypes")
def test_a_load_before_the_wait_for_a_product_is_a_race() -> None:
    device = Device("sm_100", Options(check_races=True))
    out, expected = multiply("f16", "f16", "f16", device=device)
    np.testing.assert_array_equal(out.view("f4")[:, :64], expected.astype("f4"))
    hasty = kernel.__wrapped__("f16", "").replace("@!%adds bra WAIT;", "bar.sync 0;")
    hasty = hasty.replace("mbarrier.try_wait.parity.shared.b64 %adds, [%n+8], 0;", "")
    image, words = np.zeros(4096, "u4"), np.zeros((128, 32), "u4")
    steps = np.uint64(describe(0, 0, 1024, "128B"))
    word = np.uint32(1 << 4 | 8 << 17 | 8 << 24)
    with pytest.raises(Fault, match="without having waited at the mbarrier"):
        launch(hasty, "k", image, np.uint32(16384), steps, steps, word, words,
               np.zeros((128, 128), "u4"), np.uint32(0), block=(128,), shared=16400,
               device=Device("sm_100", Options(check_races=True)))  # fmt: skip


@pytest.mark.needs("ml_dtypes")
def test_lanes_that_are_off_and_a_scaled_sum() -> None:
    def edit(text: str) -> str:
        text = text.replace(
            "tcgen05.wait::st",
            "add.u32 %u, %i, %own; mov.b32 %d0, 0f41000000;"
            "tcgen05.st.sync.aligned.32x32b.x1.b32 [%u], {%d0}; tcgen05.wait::st",
        )
        return text.replace("%w, %adds;", "%w, {0xFFFF, 0, 0, 0x80000000}, %adds, 2;")

    out, expected = multiply("f16", "f16", "f16", edit=edit, adds=1)
    expected[:, 0] += 8 / 4
    off = [*range(16), 127]
    expected[off] = 0
    expected[off, 0] = 8
    np.testing.assert_array_equal(out.view("f4")[:, :64], expected.astype("f4"))


def test_shift_moves_rows_down_except_the_last() -> None:
    out = np.zeros((32, 32), "u4")
    move(
        f"tcgen05.st.sync.aligned.32x32b.x16.b32 [%i], {names('v', 16)};"
        "setp.eq.u32 %p, %t, 0; @%p tcgen05.shift.cta_group::1.down [%i];"
        f"setp.lt.u32 %p, %t, 32; tcgen05.ld.sync.aligned.32x32b.x16.b32 {names('w', 16)}, [%i];",
        out,
    )
    number = np.arange(32)[:, None] * 32 + np.arange(16)
    number[1:, :8] = number[:-1, :8].copy()
    np.testing.assert_array_equal(out[:, :16], number)


@pytest.mark.parametrize(("source", "width"), [("b4x16_p64", 4), ("b6x16_p32", 6)])
def test_copies_decompress(source: str, width: int) -> None:
    out = np.zeros((32, 32), "u4")
    body = f"""
    mad.lo.u32 %v9, %t, 16, %h; mul.lo.u32 %v0, %t, 0x01234567; mul.lo.u32 %v1, %t, 0x0789ABCD;
    bar.sync 0; st.shared.v4.b32 [%v9], {{%v0, %v1, %t, %t}}; bar.sync 0;
    mov.b64 %at, 0; cvt.u64.u32 %at, %h; shr.u64 %at, %at, 4;
    or.b64 %at, %at, {1 << 46 | 128 >> 4 << 32 | 8 << 16}; setp.eq.u32 %p, %t, 0;
    @%p tcgen05.cp.cta_group::1.32x128b.warpx4.b8x16.{source} [%i], %at;
    setp.lt.u32 %p, %t, 32; tcgen05.ld.sync.aligned.32x32b.x4.b32 {names("w", 4)}, [%i];
    """
    move(body, out)
    for thread in range(32):
        low, high = thread * 0x01234567 & 0xFFFFFFFF, thread * 0x0789ABCD & 0xFFFFFFFF
        number = low | high << 32 | thread << 64 | thread << 96
        each = [number >> width * i & ((1 << width) - 1) for i in range(16)]
        octets = bytes(x << 2 if width == 4 else x for x in each)
        np.testing.assert_array_equal(out[thread, :4], np.frombuffer(octets, "u4"))
