"""Shared memory that nobody wrote: reading it is nothing, using what was read is an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from corpus._case import cuda
from emulate import evaluate, launch
from emulator_internals import Fault

LAUNCH_FAILED = 719
UNWRITTEN = "which the block has not written"


def run(kernel: str, *arguments: Any, **how: Any) -> None:
    launch(cuda("undefined.cu"), kernel, *arguments, **{"block": (64,), **how})


def fail(kernel: str, *arguments: Any, **how: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        run(kernel, *arguments, **how)
    fault = caught.value
    assert fault.code == LAUNCH_FAILED
    assert "an undefined value" in str(fault)
    return fault


@pytest.mark.slow
def test_cub_block_merge_sort_is_right() -> None:
    keys = np.random.default_rng(0).integers(-999, 999, (3, 384), np.int32)
    wanted = np.sort(keys, axis=1)
    run("block_merge_sort", keys, block=(128,), grid=(3,))
    np.testing.assert_array_equal(keys, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 100, 256])
def test_cub_block_merge_sort_of_fewer_items_is_right(n: int) -> None:
    keys, values = np.random.default_rng(n).standard_normal(256), np.arange(256, dtype=np.int32)
    wanted = np.argsort(keys[:n], kind="stable")
    run("block_merge_sort_part", keys, values, np.int32(n))
    np.testing.assert_array_equal(values[:n], wanted)


@pytest.mark.slow
def test_cub_warp_merge_sort_is_right() -> None:
    keys = np.random.default_rng(0).integers(-999, 999, (4, 64), np.int16)
    wanted = np.sort(keys, axis=1)
    run("warp_merge_sort", keys)
    np.testing.assert_array_equal(keys, wanted)


def test_a_load_before_its_condition_is_right() -> None:
    out = np.zeros(64, np.int32)
    run("hoisted", out)
    np.testing.assert_array_equal(out[:32], np.arange(32) + 1)


def test_padding_may_be_copied() -> None:
    out = np.zeros(64, np.dtype({"names": ["t", "v"], "formats": ["i1", "f8"], "offsets": [0, 8]}))
    run("padding", out)
    np.testing.assert_array_equal(out["t"], np.arange(64)[::-1])
    np.testing.assert_array_equal(out["v"], np.arange(64)[::-1] * 0.5)


def test_the_defined_bytes_of_a_word_are_defined() -> None:
    out = np.zeros(64, np.uint32)
    run("packed", out)
    np.testing.assert_array_equal(out, np.arange(64) * 257)


def test_sums_of_fewer_warps_than_lanes_are_right() -> None:
    row = np.arange(256, dtype=np.int32)
    run("integral_row", row, block=(256,))
    np.testing.assert_array_equal(row, np.arange(256).cumsum())


def test_lanes_outside_the_mask_may_be_read_if_nobody_looks() -> None:
    out = np.zeros(2, np.int32)
    run("few_lanes", out)
    np.testing.assert_array_equal(out, [120, 120 + 16 * 32])


def test_a_defined_operand_of_and_decides() -> None:
    out = np.zeros(64, np.int32)
    run("either", out, np.int32(20))
    np.testing.assert_array_equal(out, np.arange(64) < 7)


def test_atomics_on_what_nobody_looks_at_are_right() -> None:
    out = np.zeros(4, np.int32)
    run("trash_bin", out, np.int32(40))
    np.testing.assert_array_equal(out, 10)


@pytest.mark.parametrize(
    ("kernel", "use"),
    [
        ("to_output", "written by st"),
        ("to_branch", "executed"),
        ("to_address", "address of st"),
        ("to_shared_address", "address of ld"),
        ("to_atomic", "the value written by atom"),
        ("to_shuffle", "written by st"),
        ("to_vote", "written by st"),
        ("to_selection", "written by st"),
        ("to_barrier", "bar"),
        ("to_printf", "an argument of"),
        ("to_function", "written by st"),
        ("to_shared_copy", "written by st"),
    ],
)
def test_a_use_is_found_with_the_read(kernel: str, use: str) -> None:
    fault = fail(kernel, np.zeros(64, np.int32))
    assert use in fault.reason
    assert UNWRITTEN in fault.reason
    assert "4-byte read of shared address 0xfc" in fault.reason
    assert "the value: block (0, 0, 0), thread (0, 0, 0) at PTX line" in str(fault)
    assert "undefined.cu:" in str(fault)
    assert fault.source is not None
    run(kernel, np.zeros(64, np.int32), check_uninitialized=False, write=lambda _: None)


@pytest.mark.parametrize("defined", [16, 15])
def test_a_selection_of_two_equal_values_is_defined_in_its_lanes(defined: int) -> None:
    ptx = """.version 8.7\n.target sm_80\n.address_size 64
    .visible .entry k(.param .u64 result, .param .u32 first)
    { .reg .b32 %i, %v, %u, %n; .reg .b64 %o; .reg .pred p, q; .shared .b32 s;
      ld.param.u64 %o, [result]; ld.param.u32 %n, [first]; mov.u32 %i, %tid.x;
      ld.shared.u32 %u, [s]; setp.eq.u32 p, %u, 0;
      max.u32 %v, %i, 16; selp.u32 %v, %v, %i, p;
      setp.lt.u32 q, %i, %n; @q ret;
      mad.wide.u32 %o, %i, 4, %o; st.global.u32 [%o], %v; ret; }
    """
    out = np.zeros(32, np.uint32)
    if defined == 16:
        launch(ptx, "k", out, np.uint32(defined), check_uninitialized=True)
        assert out.tolist() == [0] * 16 + list(range(16, 32))
    else:
        with pytest.raises(Fault, match=r"an undefined value(?s:.)*thread \(15, 0, 0\)"):
            launch(ptx, "k", out, np.uint32(defined), check_uninitialized=True)


def test_arithmetic_of_floats_passes_it_on() -> None:
    assert "written by st" in fail("to_arithmetic", np.zeros(64, np.float32)).reason


def test_a_local_array_keeps_it() -> None:
    run(
        "to_local_array",
        np.zeros(32, np.int32),
        np.int32(1),
        block=(32,),
        check_uninitialized=False,
    )
    fault = fail("to_local_array", np.zeros(64, np.int32), np.int32(2))
    assert UNWRITTEN in fault.reason


def test_a_forgotten_zero_of_a_counter_is_found() -> None:
    fault = fail("counter", np.zeros(1, np.int32))
    assert "atom" in str(fault) or "ld" in str(fault)
    assert UNWRITTEN in fault.reason


def test_the_value_of_a_lane_outside_the_mask_is_undefined() -> None:
    fault = fail("foreign_lane", np.zeros(20, np.int32), block=(32,))
    assert "lane 20 of the warp" in fault.reason
    assert fault.thread == (16, 0, 0)


def test_the_value_of_a_lane_that_has_exited_is_undefined() -> None:
    fault = fail("lane_that_left", np.zeros(64, np.int32))
    assert "lane 16 of the warp" in fault.reason


LOAD = "mov.u32 %r1, box; shl.b32 %r2, %i, 2; and.b32 %r2, %r2, 255; add.u32 %r1, %r1, %r2;"
EVEN = "and.b32 %r3, %i, 1; setp.eq.u32 %p1, %r3, 0; @%p1 st.shared.u32 [%r1], %a;"


@pytest.mark.parametrize(
    "code",
    [
        # A guarded load keeps the old, defined value elsewhere.
        "mov.u32 %out, 7; @%p1 ld.shared.u32 %out, [%r1];",
        # The address and the result are one register.
        "@!%p1 st.shared.u32 [%r1], 7; ld.shared.u32 %r1, [%r1]; mov.u32 %out, %r1;",
        "ld.shared.u32 %r4, [%r1]; and.b32 %out, %r4, 0;",
        "ld.shared.u32 %r4, [%r1]; mul.lo.u32 %r4, %r4, 0; mov.u32 %out, 3;",
        "ld.shared.u32 %r4, [%r1]; selp.u32 %out, %r4, 9, %p1;",
        "ld.shared.u32 %r4, [%r1]; mov.u32 %out, 5; @%p1 mov.u32 %out, %r4;",
        "ld.shared.u32 %r4, [%r1]; mov.b64 %d1, {%r4, %a}; mov.b64 {%r5, %out}, %d1;",
        "ld.shared.u32 %r4, [%r1]; setp.lt.and.u32 %p2, %r4, 9, %p1; selp.u32 %out, 1, 0, %p2;",
        "ld.shared.u32 %r4, [%r1]; setp.lt.u32 %p2, %r4, 9; selp.u32 %out, 4, 4, %p2;",
        "ld.shared.u32 %r4, [%r1]; shl.b32 %r4, %r4, 31; shl.b32 %out, %r4, 1;",
        "ld.shared.u32 %r4, [%r1]; lop3.b32 %out, %r4, %r4, %r4, 0x00;",
    ],
)
def test_what_does_not_depend_on_undefined_bits_is_defined(code: str) -> None:
    a = np.arange(64, dtype=np.uint32)
    wanted = evaluate(LOAD + EVEN + code, a, check_uninitialized=False)
    np.testing.assert_array_equal(evaluate(LOAD + EVEN + code, a), wanted)


@pytest.mark.parametrize(
    "code",
    [
        "ld.shared.u32 %out, [%r1];",
        "ld.shared.u32 %r1, [%r1]; mov.u32 %out, %r1;",
        "ld.shared.u32 %r4, [%r1]; cvt.u64.u32 %d1, %r4; cvt.u32.u64 %out, %d1;",
        "ld.shared.u32 %r4, [%r1]; add.cc.u32 %r4, %r4, %a; addc.u32 %r5, 0, 0; neg.s32 %out, %r5;",
        "ld.shared.u32 %r4, [%r1]; cvt.rn.f32.u32 %out, %r4;",
        "ld.shared.u32 %r4, [%r1]; prmt.b32 %out, %r4, 0, 0x0123;",
        "ld.shared.u32 %r4, [%r1]; add.u32 %out, %r4, %a;",
        "mov.u32 %out, 5; ld.shared.u32 %r4, [%r1]; @!%p1 mov.u32 %out, %r4;",
        "ld.shared.u32 %r4, [%r1]; match.any.sync.b32 %out, %r4, -1;",
        "ld.shared.u32 %r4, [%r1]; redux.sync.add.u32 %out, %r4, -1;",
        "ld.shared.u32 %r4, [%r1]; setp.lt.u32 %p2, %r4, 9; @%p2 st.shared.u32 [%r1], 1;",
        "ld.shared.u32 %r4, [%r1]; setp.lt.u32 %p2, %r4, 9; @%p2 exit;",
    ],
)
def test_what_depends_on_undefined_bits_is_found(code: str) -> None:
    a = np.arange(64, dtype=np.uint32)
    with pytest.raises(Fault, match="an undefined value") as caught:
        evaluate(LOAD + EVEN + code, a)
    assert caught.value.thread is not None
    evaluate(LOAD + EVEN + code, a, check_uninitialized=False)


@pytest.mark.parametrize("rows", [16, 11, 1])
def test_rows_of_a_matrix_product_that_are_not_stored_are_right(rows: int) -> None:
    rng = np.random.default_rng(rows)
    a, b = rng.integers(-4, 4, (2, 16, 16)).astype(np.float16)
    d = np.zeros((16, 16), np.float32)
    run("tensor_core_tail", a, b, d, np.int32(rows), np.int32(rows), block=(32,))
    np.testing.assert_array_equal(d[:rows], a[:rows].astype("f4") @ b.astype("f4"))
    x, y = rng.integers(-128, 128, (16, 32), np.int8), rng.integers(-128, 128, (8, 32), np.int8)
    z = np.zeros((16, 8), np.int32)
    run("int8_tail", x, y, z, np.int32(rows), np.int32(rows), block=(32,))
    np.testing.assert_array_equal(z[:rows], x[:rows].astype("i4") @ y.astype("i4").T)


@pytest.mark.parametrize("kernel", ["tensor_core_tail", "int8_tail"])
def test_a_stored_row_of_a_matrix_product_with_an_undefined_one_is_found(kernel: str) -> None:
    a, b, d = np.ones((3, 256), np.float32)
    fault = fail(kernel, a, b, d, np.int32(11), np.int32(12), block=(32,))
    assert UNWRITTEN in fault.reason


@pytest.mark.parametrize(
    ("line", "use"),
    [
        ("add.u32 %u, %u, -1; bar.warp.sync %u;", "an operand of bar.warp.sync"),
        (
            (
                "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 "
                "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%s], %u;"
            ),
            "the stride of wmma.load.a",
        ),
        (
            "wmma.store.d.sync.aligned.row.m8n8k4.shared.f64 [%s], {%d0, %d0}, %u;",
            "the stride of wmma.store.d",
        ),
    ],
)
def test_what_says_where_or_for_whom_must_be_defined(line: str, use: str) -> None:
    text = f""".version 8.0
.target sm_90
.address_size 64
.entry k() {{
    .shared .align 16 .b8 hidden[4096]; .reg .b32 %u, %s, %r<8>; .reg .f64 %d<1>;
    ld.shared.u32 %u, [hidden]; mov.u32 %s, hidden; mov.f64 %d0, 0d0000000000000000;
    {line}
}}"""
    with pytest.raises(Fault) as caught:
        launch(text, "k")
    assert use in str(caught.value)
    assert "undefined value" in str(caught.value)


LOCAL = """
.version 8.4
.target sm_80
.address_size 64
.visible .entry f(.param .u64 out, .param .u32 n)
{
  .local .align 4 .b8 box[32];
  .reg .u64 %p, %at; .reg .u32 %n, %v; .reg .pred %q;
  ld.param.u64 %p, [out];
  ld.param.u32 %n, [n];
  setp.eq.u32 %q, %n, 0;
  @%q bra READ;
  st.local.u32 [box+4], %n;
READ:
  ld.local.u32 %v, [box+4];
  st.global.u32 [%p], %v;
  ret;
}
"""


def test_with_an_option_local_memory_begins_undefined() -> None:
    out = np.full(1, 9, np.uint32)
    launch(LOCAL, "f", out, np.uint32(0))
    assert out[0] == 0
    launch(LOCAL, "f", out, np.uint32(7), check_unwritten=True)
    assert out[0] == 7
    with pytest.raises(Fault, match="a 4-byte read of local address 0x4, which the thread has not"):
        launch(LOCAL, "f", out, np.uint32(0), check_unwritten=True)


GROWING = """
.version 8.4
.target sm_80
.address_size 64
.func (.reg .u32 %r) deeper(.reg .u32 %n)
{
  .local .align 4 .b8 frame[64];
  .reg .u32 %v, %m; .reg .pred %q;
  setp.eq.u32 %q, %n, 0;
  @%q bra READ;
  sub.u32 %m, %n, 1;
  call (%v), deeper, (%m);
  mov.u32 %r, %v;
  ret;
READ:
  ld.local.u32 %r, [frame+60];
  ret;
}
.visible .entry f(.param .u64 out, .param .u32 n)
{
  .reg .u64 %p; .reg .u32 %n, %v;
  ld.param.u64 %p, [out];
  ld.param.u32 %n, [n];
  call (%v), deeper, (%n);
  st.global.u32 [%p], %v;
  ret;
}
"""


@pytest.mark.parametrize("depth", [0, 1, 9])
def test_the_frames_of_calls_begin_undefined_too(depth: int) -> None:
    out = np.full(1, 9, np.uint32)
    launch(GROWING, "f", out, np.uint32(depth))
    assert out[0] == 0
    with pytest.raises(Fault, match="read of local address"):
        launch(GROWING, "f", out, np.uint32(depth), check_unwritten=True)
