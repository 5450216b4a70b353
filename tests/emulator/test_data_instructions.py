"""mov, cvt, comparison, selection, predicates, loads and stores."""

from __future__ import annotations

import numpy as np
import pytest
from emulate import evaluate, launch
from emulator_internals import Fault

RNG = np.random.default_rng(5)
WORDS = np.concatenate(
    [RNG.integers(0, 2**32, 100, np.uint32), np.array([0, 1, 0x7FFFFFFF, 0x80000000, 2**32 - 1])]
).astype(np.uint32)
FLOATS = np.concatenate(
    [
        RNG.standard_normal(100).astype(np.float32) * 10,
        np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40], np.float32),
    ]
)


def test_mov_packs_and_unpacks() -> None:
    low, high = WORDS, WORDS[::-1]
    wide = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    np.testing.assert_array_equal(evaluate("mov.b64 %out, {%a, %b};", low, high, out="u8"), wide)
    np.testing.assert_array_equal(evaluate("mov.b64 {%r0, %out}, %a;", wide), high)
    np.testing.assert_array_equal(evaluate("mov.b64 {%out, _}, %a;", wide), low)
    halves = evaluate("mov.b32 {%h0, %h1}, %a; mov.b32 %out, {%h1, %h0};", low)
    np.testing.assert_array_equal(halves, low >> np.uint32(16) | low << np.uint32(16))
    code = "mov.b64 {%h0, %h1, %h2, %h3}, %a; mov.b64 %out, {%h3, %h2, %h1, %h0};"
    turned = np.ascontiguousarray(wide).view(np.uint16).reshape(-1, 4)[:, ::-1]
    got = evaluate(code, wide, out="u8")
    np.testing.assert_array_equal(got, np.ascontiguousarray(turned).view(np.uint64)[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("source", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("to", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
def test_cvt_between_integers(source: str, to: str) -> None:
    a = RNG.integers(0, 2**64, 50, np.uint64)
    narrow = a.astype(np.dtype(source.replace("s", "i")[0] + str(int(source[1:]) // 8)))
    target = np.dtype(to.replace("s", "i")[0] + str(int(to[1:]) // 8))
    # Both registers are 64 bits wide: the source is truncated, the result extended.
    got = evaluate(f"cvt.{to}.{source} %out, %a;", a, out="u8")
    extended = np.int64 if to[0] == "s" else np.uint64
    np.testing.assert_array_equal(got, narrow.astype(target).astype(extended).view(np.uint64))
    got = evaluate(f"cvt.sat.{to}.{source} %out, %a;", a, out="u8")
    info = np.iinfo(target)
    clamped = [min(max(int(x), info.min), info.max) for x in narrow]
    wanted = np.array(clamped, target).astype(extended).view(np.uint64)
    np.testing.assert_array_equal(got, wanted)


def test_cvt_float_forms() -> None:
    small = (RNG.standard_normal(64) * 100).astype(np.float32)
    np.testing.assert_array_equal(
        evaluate("cvt.rzi.s32.f32 %out, %a;", small, out="i4"), np.trunc(small).astype(np.int32)
    )
    np.testing.assert_array_equal(
        evaluate("cvt.rn.f16x2.f32 %out, %a, %b;", small, small[::-1]).view(np.float16),
        np.stack([small[::-1], small], 1).astype(np.float16).reshape(-1),
    )
    np.testing.assert_array_equal(
        evaluate("cvt.rn.f16.f32 %h0, %a; cvt.f32.f16 %out, %h0;", small, out="f4"),
        small.astype(np.float16).astype(np.float32),
    )
    np.testing.assert_array_equal(
        evaluate("cvt.rna.tf32.f32 %out, %a;", np.float32([1.0, 1 + 2**-11]), out="f4"),
        np.float32([1.0, 1 + 2**-10]),
    )


ORDERS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


@pytest.mark.parametrize("order", ["eq", "ne", *ORDERS])
def test_setp(order: str) -> None:
    function = {"eq": np.equal, "ne": np.not_equal, **ORDERS}[order]
    a, b = (x.reshape(-1) for x in np.meshgrid(WORDS[-20:], WORDS[-20:]))
    for kind, dtype in (("u32", np.uint32), ("s32", np.int32)):
        got = evaluate(f"setp.{order}.{kind} %p0, %a, %b; selp.u32 %out, 1, 0, %p0;", a, b)
        np.testing.assert_array_equal(got, function(a.view(dtype), b.view(dtype)))
    x, y = (v.reshape(-1) for v in np.meshgrid(FLOATS[-20:], FLOATS[-20:]))
    unordered = np.isnan(x) | np.isnan(y)
    code = f"setp.{order}.f32 %p0|%p1, %a, %b; selp.u32 %r0, 1, 0, %p0; @%p1 add.u32 %r0, %r0, 2;"
    got = evaluate(f"{code} mov.u32 %out, %r0;", x, y)
    wanted = function(x, y) & ~unordered
    np.testing.assert_array_equal(got, np.where(wanted, 1, 2))
    got = evaluate(f"set.{order}u.u32.f32 %out, %a, %b;", x, y)
    np.testing.assert_array_equal(got != 0, function(x, y) | unordered)
    got = evaluate(f"set.{order}.f32.f32 %out, %a, %b;", x, y, out="f4")
    np.testing.assert_array_equal(got, wanted.astype(np.float32))


@pytest.mark.parametrize("combine", ["and", "or", "xor"])
def test_setp_combines(combine: str) -> None:
    a, b = np.arange(16, dtype=np.uint32), np.arange(16, dtype=np.uint32)[::-1]
    function = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[combine]
    code = (
        "setp.gt.u32 %p1, %a, 5;"
        f"setp.lt.{combine}.u32 %p2|%p3, %a, %b, !%p1;"
        "selp.u32 %r0, 1, 0, %p2; selp.u32 %r1, 2, 0, %p3; or.b32 %out, %r0, %r1;"
    )
    got = evaluate(code, a, b)
    first, second = function(a < b, a <= 5), function(a >= b, a <= 5)
    np.testing.assert_array_equal(got, first + 2 * second)


def test_predicate_logic() -> None:
    a = np.arange(8, dtype=np.uint32)
    code = """
    setp.gt.u32 %p0, %a, 2; setp.lt.u32 %p1, %a, 6; and.pred %p2, %p0, %p1; not.pred %p3, %p2;
    xor.pred %p4, %p0, %p3; or.pred %p5, %p4, %p2; mov.pred %p6, %p5;
    selp.u32 %r0, 1, 0, %p2; selp.u32 %r1, 2, 0, %p4; selp.u32 %r2, 4, 0, %p6;
    add.u32 %r0, %r0, %r1; add.u32 %out, %r0, %r2;
    """
    p0, p2 = a > 2, (a > 2) & (a < 6)
    p4 = p0 ^ ~p2
    np.testing.assert_array_equal(evaluate(code, a), p2 * 1 + p4 * 2 + (p4 | p2) * 4)


def test_guards() -> None:
    a = np.arange(100, dtype=np.uint32)
    code = """
    mov.u32 %out, 7; and.b32 %r0, %a, 1; setp.eq.u32 %p0, %r0, 1;
    @%p0 add.u32 %out, %a, 1; @!%p0 mul.lo.u32 %out, %out, %a;
    setp.gt.u32 %p1, %a, 1000; @%p1 mov.u32 %out, 0; @!%p1 add.u32 %out, %out, 1;
    """
    np.testing.assert_array_equal(evaluate(code, a), np.where(a % 2, a + 1, 7 * a) + 1)


def test_guarded_memory() -> None:
    a = np.arange(128, dtype=np.uint32)
    code = """
    mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, box; add.u32 %r1, %r1, %r2;
    and.b32 %r3, %a, 3; setp.ne.u32 %p0, %r3, 0; st.shared.u32 [%r1], 100;
    @%p0 st.shared.u32 [%r1], %a; mov.u32 %out, 5;
    setp.gt.u32 %p1, %a, 20; @%p1 ld.shared.u32 %out, [%r1];
    @%p1 atom.shared.add.u32 %out, [%r1], %out;
    """
    stored = np.where(a % 4, a, 100)
    np.testing.assert_array_equal(evaluate(code, a), np.where(a > 20, stored, 5))


def test_slct_and_copysign() -> None:
    a, b = WORDS, WORDS[::-1]
    got = evaluate("slct.b32.s32 %out, %a, %b, %a;", a, b)
    np.testing.assert_array_equal(got, np.where(a.view(np.int32) >= 0, a, b))
    x, y = FLOATS[:50], -np.abs(FLOATS[:50])
    got = evaluate("slct.f32.f32 %out, %a, %b, %a;", x, y, out="f4")
    np.testing.assert_array_equal(got, np.where(x >= 0, x, y))
    got = evaluate("copysign.f32 %out, %a, %b;", x, y, out="f4")
    np.testing.assert_array_equal(got, np.copysign(y, x))


def test_testp() -> None:
    known = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda x: ~np.isnan(x),
        "notanumber": np.isnan,
    }
    for name, function in known.items():
        got = evaluate(f"testp.{name}.f32 %p0, %a; selp.u32 %out, 1, 0, %p0;", FLOATS)
        np.testing.assert_array_equal(got, function(FLOATS), err_msg=name)


def test_loads_extend_and_stores_truncate() -> None:
    a = WORDS
    code = """
    mov.u32 %r0, %tid.x; shl.b32 %r0, %r0, 2; mov.u32 %r1, box; add.u32 %r0, %r0, %r1;
    st.shared.b32 [%r0], %a;
    """
    for kind, dtype in (("u8", "u1"), ("s8", "i1"), ("u16", "u2"), ("s16", "i2")):
        got = evaluate(f"{code} ld.shared.{kind} %out, [%r0];", a)
        narrow = a.astype(dtype).astype(np.int32).view(np.uint32)
        np.testing.assert_array_equal(got, narrow, err_msg=kind)
    got = evaluate(f"{code} st.shared.u8 [%r0+1], %a; ld.shared.u32 %out, [%r0];", a)
    np.testing.assert_array_equal(got, a & ~np.uint32(0xFF00) | (a & 255) << np.uint32(8))
    got = evaluate(f"{code} cvt.u64.u32 %d0, %r0; ld.shared.u32 %d1, [%d0]; mov.b64 %out, %d1;",
                   a, out="u8")  # fmt: skip
    np.testing.assert_array_equal(got, a)


def test_vectors() -> None:
    a = RNG.integers(0, 2**32, 16, np.uint32)
    code = """
    mov.u32 %r0, box; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; add.u32 %r0, %r0, %r2;
    add.u32 %r3, %a, 1; add.u32 %r4, %a, 2; add.u32 %r5, %a, 3;
    st.shared.v4.b32 [%r0], {%a, %r3, %r4, %r5};
    ld.shared.v2.b64 {%d0, %d1}, [%r0];
    ld.volatile.shared.v2.u16 {%h0, %h1}, [%r0+4];
    shr.u64 %d2, %d1, 32; cvt.u32.u64 %r6, %d2; cvt.u32.u16 %r7, %h1; add.u32 %out, %r6, %r7;
    """
    wanted = a + np.uint32(3) + ((a + np.uint32(1)) >> np.uint32(16))
    np.testing.assert_array_equal(evaluate(code, a), wanted)


def test_address_spaces() -> None:
    code = """
    .local .align 8 .b8 own[16];
    mov.u64 %d0, own; st.local.u32 [%d0+4], %a; cvta.local.u64 %d1, %d0; ld.u32 %r0, [%d1+4];
    mov.u32 %r1, box; cvt.u64.u32 %d2, %r1; cvta.shared.u64 %d3, %d2; mov.u32 %r2, %tid.x;
    mul.wide.u32 %d4, %r2, 4; add.u64 %d3, %d3, %d4; st.u32 [%d3], %r0;
    cvta.to.shared.u64 %d5, %d3; cvt.u32.u64 %r3, %d5; ld.shared.u32 %r4, [%r3];
    isspacep.local %p0, %d1; isspacep.shared %p1, %d3; isspacep.global %p2, %at;
    isspacep.shared %p3, %d1; selp.u32 %r5, 1, 0, %p0; selp.u32 %r6, 2, 0, %p1;
    selp.u32 %r7, 4, 0, %p2; selp.u32 %r8, 8, 0, %p3; add.u32 %out, %r4, %r5;
    add.u32 %out, %out, %r6; add.u32 %out, %out, %r7; add.u32 %out, %out, %r8;
    """
    a = np.arange(60, dtype=np.uint32) * 100
    np.testing.assert_array_equal(evaluate(code, a), a + 7)


def test_brx_idx() -> None:
    code = """
    mov.u32 %out, 0; rem.u32 %r0, %a, 3; bra START;
    table: .branchtargets ONE, TWO, THREE;
    START: brx.idx %r0, table;
    ONE: add.u32 %out, %out, 10; bra END;
    TWO: add.u32 %out, %out, 20;
    THREE: add.u32 %out, %out, 30;
    END: add.u32 %out, %out, %a;
    """
    a = np.arange(50, dtype=np.uint32)
    np.testing.assert_array_equal(evaluate(code, a), np.choose(a % 3, [10, 50, 30]) + a)


def test_labels_have_scopes() -> None:
    part = """
    { .reg .pred p; .reg .u32 n; mov.u32 n, 0;
    AGAIN: add.u32 n, n, 1; setp.lt.u32 p, n, %a; @p bra AGAIN; add.u32 %out, %out, n; }
    """
    a = np.arange(40, dtype=np.uint32)
    got = evaluate(f"mov.u32 %out, 0; {part} {part}", a)
    np.testing.assert_array_equal(got, 2 * np.maximum(a, 1))


def test_module_variables() -> None:
    ptx = """
    .version 8.7
    .target sm_80
    .address_size 64
    .global .align 4 .u32 numbers[4] = {1, 2, 0x10, -1};
    .const .align 8 .f64 real = 2.5;
    .global .align 8 .u64 places[3] = {numbers, numbers+8, generic(real)};
    .global .align 4 .f32 table[2][2] = {{1.0, 2}, {0f40400000, -4.5}};
    .global .align 1 .b8 zeros[7];
    .const .align 4 .b8 mixed[8] = {255, 1};
    .visible .entry k(.param .u64 out) {
    .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .f64 %f<3>; .reg .f32 %s<3>;
    ld.param.u64 %d0, [out];
    ld.global.u64 %d1, [places+8]; ld.global.u32 %r0, [%d1]; st.global.u32 [%d0], %r0;
    ld.global.u64 %d2, [places+16]; ld.f64 %f0, [%d2]; cvt.rn.f32.f64 %s0, %f0;
    st.global.f32 [%d0+4], %s0; ld.global.f32 %s1, [table+12]; st.global.f32 [%d0+8], %s1;
    ld.const.u16 %r1, [mixed]; st.global.u32 [%d0+12], %r1; ld.global.u8 %r2, [zeros+6];
    st.global.u32 [%d0+16], %r2; st.global.u32 [numbers+12], 77; ret; }
    """
    out = np.zeros(5, np.uint32)
    module = launch(ptx, "k", out, block=(1,))
    np.testing.assert_array_equal(out[[0, 3, 4]], [16, 0x1FF, 0])
    np.testing.assert_array_equal(out[1:3].view(np.float32), [2.5, -4.5])
    assert module.size("numbers") == 16
    assert dict(zip(*module.limits, strict=True))[module.address("numbers")] == (
        module.address("numbers") + 16
    )


def test_unknown_instruction_fails_when_reached() -> None:
    a = np.arange(4, dtype=np.uint32)
    code = "setp.gt.u32 %p0, %a, 100; @%p0 bra RARE; mov.u32 %out, %a; bra END; RARE: {} END:"
    unknown = "tcgen05.frobnicate.sync.b32 %out, %a;"
    np.testing.assert_array_equal(evaluate(code.format(unknown), a), a)
    with pytest.raises(Fault, match=r"tcgen05\.frobnicate\.sync\.b32 is not emulated") as caught:
        evaluate(code.format(unknown), a + np.uint32(100))
    assert caught.value.code == 801
    assert caught.value.line is not None


def test_the_report_names_every_unknown_instruction() -> None:
    code = "bogus.sync.b32 %out, %a; bogus.sync.b32 %a, %out; tcgen05.mess.b32 %a;"
    other = r"tcgen05\.mess\.b32 \(PTX line \d+\)\n"
    with pytest.raises(Fault, match=rf"; neither are, in the same function: {other}") as caught:
        evaluate(code, np.arange(4, dtype=np.uint32))
    assert str(caught.value).startswith("the instruction bogus.sync.b32 is not emulated;")


def test_special_registers() -> None:
    ptx = """
    .version 8.7
    .target sm_80
    .address_size 64
    .visible .entry k(.param .u64 out) {
    .reg .b64 %d<4>; .reg .b32 %r<40>;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z;
    mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.z;
    mov.u32 %r6, %laneid; mov.u32 %r7, %warpid; mov.u32 %r8, %lanemask_lt;
    mov.u32 %r9, %lanemask_ge; mov.u32 %r10, %ntid.y; mov.u32 %r11, %nctaid.z;
    mov.u32 %r12, %lanemask_gt; mov.u32 %r13, %lanemask_eq; mov.u32 %r14, %lanemask_le;
    mov.u32 %r15, %dynamic_smem_size;
    mad.lo.u32 %r20, %r2, 3, %r1; mad.lo.u32 %r20, %r20, 5, %r0;
    mad.lo.u32 %r21, %r5, 2, %r4; mad.lo.u32 %r21, %r21, 4, %r3; mad.lo.u32 %r21, %r21, 60, %r20;
    ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r21, 64; add.u64 %d0, %d0, %d1;
    st.global.v4.u32 [%d0], {%r0, %r1, %r2, %r3}; st.global.v4.u32 [%d0+16], {%r4, %r5, %r6, %r7};
    st.global.v4.u32 [%d0+32], {%r8, %r9, %r10, %r11};
    st.global.v4.u32 [%d0+48], {%r12, %r13, %r14, %r15}; ret; }
    """
    out = np.zeros((3, 2, 4, 4, 3, 5, 16), np.uint32)
    launch(ptx, "k", out, grid=(4, 2, 3), block=(5, 3, 4), shared=48, lanes=256)
    cz, cy, cx, z, y, x = np.indices(out.shape[:-1]).astype(np.uint64)
    thread = (z * 3 + y) * 5 + x
    lane = thread % 32
    one = np.uint64(1)
    lt, le = (one << lane) - one, (one << (lane + one)) - one
    full = np.full_like(lane, 1)
    columns = [x, y, z, cx, cy, cz, lane, thread // 32, lt, ~lt, full * 3, full * 3]
    columns += [~le, one << lane, le, full * 48]
    np.testing.assert_array_equal(out, np.stack(columns, -1).astype(np.uint32))


def test_a_guarded_pending_count_keeps_its_result() -> None:
    state = np.full(32, 64, np.uint64)
    got = evaluate(
        "mov.u32 %out, 777; setp.lt.u32 %p0, %i, 16; @%p0 mbarrier.pending_count.b64 %out, %a;",
        state,
    )
    assert got.tolist() == [64] * 16 + [777] * 16
