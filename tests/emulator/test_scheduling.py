"""Divergence and reconvergence, warps that wait, barriers, calls."""

from __future__ import annotations

import numpy as np
import pytest
from emulate import evaluate, launch
from emulator_internals import Fault

HEAD = ".version 8.7\n.target sm_80\n.address_size 64\n"
LANES = np.arange(128, dtype=np.uint32)


@pytest.mark.parametrize("lanes", [64, 128, 1 << 15])
def test_loops_of_different_lengths(lanes: int) -> None:
    # Collatz: the lanes of a warp leave the loop at very different times.
    code = """
    mov.u32 %out, 0; mov.u32 %r0, %a;
    AGAIN: setp.le.u32 %p0, %r0, 1; @%p0 bra DONE;
    and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN;
    mad.lo.u32 %r0, %r0, 3, 1; bra NEXT;
    EVEN: shr.u32 %r0, %r0, 1;
    NEXT: add.u32 %out, %out, 1; bra AGAIN;
    DONE:
    """

    def steps(n: int) -> int:
        count = 0
        while n > 1:
            n, count = n // 2 if n % 2 == 0 else 3 * n + 1, count + 1
        return count

    a = np.arange(300, dtype=np.uint32)
    got = evaluate(code, a, lanes=lanes)
    np.testing.assert_array_equal(got, [steps(n) for n in range(300)])


def test_paths_meet_again() -> None:
    code = """
    and.b32 %r0, %a, 3; setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 1;
    mov.u32 %r5, 0;
    @%p0 bra ONE; @%p1 bra TWO; add.u32 %r5, %r5, 1; bra JOIN;
    ONE: add.u32 %r5, %r5, 2; bra JOIN;
    TWO: add.u32 %r5, %r5, 4;
    JOIN: activemask.b32 %r1; vote.sync.ballot.b32 %r2, %p0, -1;
    popc.b32 %r1, %r1; popc.b32 %r2, %r2; mad.lo.u32 %out, %r1, 100, %r2;
    mad.lo.u32 %out, %r5, 100000, %out;
    """
    taken = np.choose(LANES % 4, [2, 4, 1, 1])
    np.testing.assert_array_equal(evaluate(code, LANES), taken * 100000 + 3208)


def test_warp_barriers_at_different_places_meet() -> None:
    code = """
    and.b32 %r0, %a, 1; setp.eq.u32 %p0, %r0, 0; mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2;
    mov.u32 %r2, box; add.u32 %r1, %r1, %r2; xor.b32 %r3, %r1, 4;
    @%p0 bra EVEN;
    st.shared.u32 [%r1], 1; bar.warp.sync 0xffffffff; ld.shared.u32 %out, [%r3]; bra END;
    EVEN: st.shared.u32 [%r1], 2; bar.warp.sync 0xffffffff; ld.shared.u32 %out, [%r3];
    END:
    """
    np.testing.assert_array_equal(evaluate(code, LANES), np.where(LANES % 2, 2, 1))


def test_guarded_shuffle_waits_for_its_lanes_only() -> None:
    code = """
    and.b32 %r0, %a, 1; setp.eq.u32 %p0, %r0, 0; mov.u32 %out, 9; mov.u32 %r1, 0x55555555;
    @!%p0 mov.u32 %r1, 0;
    @%p0 shfl.sync.idx.b32 %out, %a, 4, 31, %r1;
    """
    wanted = np.where(LANES % 2, 9, LANES // 32 * 32 + 4)
    np.testing.assert_array_equal(evaluate(code, LANES), wanted)


def test_exited_lanes_are_not_waited_for() -> None:
    code = "setp.gt.u32 %p0, %a, 20; @%p0 exit; vote.sync.ballot.b32 %out, 1, 0xffffffff;"
    got = evaluate(code, np.arange(32, dtype=np.uint32))
    np.testing.assert_array_equal(got, [2**21 - 1] * 21 + [0] * 11)


def test_each_warp_has_its_barrier() -> None:
    # The number of the barrier is in a register and differs between warps that run together.
    code = """
    mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; add.u32 %r2, %r1, 3; shl.b32 %r3, %r0, 2;
    mov.u32 %r4, box; add.u32 %r3, %r3, %r4; st.shared.u32 [%r3], %a;
    bar.sync %r2, 32;
    xor.b32 %r3, %r3, 124; ld.shared.u32 %out, [%r3];
    """
    a = np.arange(64, dtype=np.uint32) * 5
    np.testing.assert_array_equal(evaluate(code, a), a.reshape(2, 32)[:, ::-1].reshape(-1))


def test_guarded_barrier() -> None:
    code = """
    mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 32; mov.u32 %out, 1;
    @%p0 bar.sync 2, 32; @%p0 mov.u32 %out, 2;
    """
    got = evaluate(code, np.zeros(64, np.uint32))
    np.testing.assert_array_equal(got, [2] * 32 + [1] * 32)


@pytest.mark.parametrize("kind", ["popc", "and", "or"])
def test_barrier_reductions_of_groups_that_come_apart(kind: str) -> None:
    result = "%r5" if kind == "popc" else "%p5"
    suffix = "u32" if kind == "popc" else "pred"
    read = "mov.u32 %out, %r5;" if kind == "popc" else "selp.u32 %out, 1, 0, %p5;"
    code = f"""
    setp.gt.u32 %p0, %a, 40; mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 20; @%p1 bra A;
    add.u32 %r1, %r1, 1; A: bar.red.{kind}.{suffix} {result}, 0, %p0; {read}
    """
    a = np.arange(128, dtype=np.uint32)
    counts = np.repeat([23, 64], 64)
    wanted = {"popc": counts, "and": counts == 64, "or": counts > 0}[kind]
    np.testing.assert_array_equal(evaluate(code, a), wanted)


def test_calls_from_divergent_code() -> None:
    ptx = (
        HEAD
        + """
    .func (.reg .u32 out) triple (.reg .u32 x)
    { .reg .pred p; setp.gt.u32 p, x, 9; @p bra BIG; mul.lo.u32 out, x, 3; ret;
      BIG: add.u32 out, x, 1000; ret; }
    .func (.param .b32 out) down (.param .b32 n)
    { .reg .b32 %a, %b; .reg .pred p; ld.param.b32 %a, [n]; setp.eq.u32 p, %a, 0;
      mov.u32 %b, 0; @p bra END; sub.u32 %b, %a, 1;
      { .param .b32 given; .param .b32 got; st.param.b32 [given], %b;
        call (got), down, (given); ld.param.b32 %b, [got]; }
      add.u32 %b, %b, %a;
      END: st.param.b32 [out], %b; ret; }
    .visible .entry k(.param .u64 result)
    { .reg .b32 %i, %x, %y; .reg .b64 %d, %o; .reg .pred p;
      mov.u32 %i, %tid.x; and.b32 %x, %i, 1; setp.eq.u32 p, %x, 0; @p bra EVEN;
      call (%y), triple, (%i); bra END;
      EVEN: @!p bra END; { .param .b32 n; .param .b32 v; st.param.b32 [n], %i;
        call (v), down, (n); ld.param.b32 %y, [v]; }
      END: ld.param.u64 %o, [result]; mul.wide.u32 %d, %i, 4; add.u64 %o, %o, %d;
      st.global.u32 [%o], %y; ret; }
    """
    )
    out = np.zeros(32, np.uint32)
    launch(ptx, "k", out)
    i = np.arange(32)
    odd = np.where(i > 9, i + 1000, 3 * i)
    np.testing.assert_array_equal(out, np.where(i % 2, odd, i * (i + 1) // 2))


def test_waiting_for_a_lane_behind() -> None:
    # The waiting loop comes first in the text: the writer must get its turn anyway.
    ptx = (
        HEAD
        + """
    .visible .entry k(.param .u64 flag, .param .u64 out)
    { .reg .b64 %f, %o; .reg .b32 %r, %v; .reg .pred p;
      ld.param.u64 %f, [flag]; ld.param.u64 %o, [out]; mov.u32 %r, %tid.x;
      setp.eq.u32 p, %r, 7; @p bra WRITE;
      WAIT: ld.acquire.gpu.global.u32 %v, [%f]; setp.eq.u32 p, %v, 0; @p bra WAIT;
      bra END;
      WRITE: mov.u32 %v, 42; st.release.gpu.global.u32 [%f], %v;
      END: mad.wide.u32 %o, %r, 4, %o; st.global.u32 [%o], %v; ret; }
    """
    )
    flag, out = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    launch(ptx, "k", flag, out, block=(64,), time_limit=20)
    assert (out == 42).all()


def test_undefined_function_fails_when_called() -> None:
    ptx = (
        HEAD
        + """
    .extern .func elsewhere ();
    .visible .entry k(.param .u32 go)
    { .reg .b32 %r; .reg .pred p; ld.param.u32 %r, [go]; setp.eq.u32 p, %r, 0; @p ret;
      call elsewhere, (); ret; }
    """
    )
    launch(ptx, "k", np.uint32(0))
    with pytest.raises(Fault, match="'elsewhere' is not defined") as caught:
        launch(ptx, "k", np.uint32(1))
    assert caught.value.code == 801


def test_lanes_call_different_functions_of_a_table() -> None:
    ptx = (
        HEAD
        + """
    .func (.param .b32 out) triple (.param .b32 x)
    { .reg .b32 %a; ld.param.b32 %a, [x]; mul.lo.u32 %a, %a, 3; st.param.b32 [out], %a; ret; }
    .func (.param .b32 out) next (.param .b32 x)
    { .reg .b32 %a; ld.param.b32 %a, [x]; add.u32 %a, %a, 1; st.param.b32 [out], %a; ret; }
    .global .align 8 .u64 table[2] = {triple, next};
    .visible .entry k(.param .u64 result)
    { .reg .b32 %i, %x; .reg .b64 %o, %t, %f;
      ld.param.u64 %o, [result]; mov.u32 %i, %tid.x; and.b32 %x, %i, 1;
      mov.u64 %t, table; mad.wide.u32 %t, %x, 8, %t; ld.global.u64 %f, [%t];
      { .param .b32 given; .param .b32 got; st.param.b32 [given], %i;
        p: .callprototype (.param .b32 _) _ (.param .b32 _);
        call (got), %f, (given), p; ld.param.b32 %x, [got]; }
      mad.wide.u32 %o, %i, 4, %o; st.global.u32 [%o], %x; ret; }
    """
    )
    out = np.zeros(32, np.uint32)
    launch(ptx, "k", out)
    i = np.arange(32)
    np.testing.assert_array_equal(out, np.where(i % 2, i + 1, 3 * i))


def test_a_cooperative_grid_that_cannot_run_at_once_is_refused() -> None:
    ptx = HEAD + ".visible .entry k() { ret; }"
    launch(ptx, "k", grid=(8,), block=(1024,), cooperative=True)
    with pytest.raises(Fault, match=r"1025 blocks of 1024 threads: .* at most 1048576 threads"):
        launch(ptx, "k", grid=(1025,), block=(1024,), cooperative=True)


def test_wrong_function_address() -> None:
    ptx = (
        HEAD
        + """
    .visible .entry k(.param .u64 f)
    { .reg .b64 %f; ld.param.u64 %f, [f]; p: .callprototype _ (); call %f, (), p; ret; }
    """
    )
    with pytest.raises(Fault, match="not the address of a function"):
        launch(ptx, "k", np.uint64(64))


def test_shuffle_that_waits_for_ever() -> None:
    code = """
    setp.eq.u32 %p0, %a, 3; @%p0 bra OTHER; shfl.sync.idx.b32 %out, %a, 0, 31, -1; bra END;
    OTHER: bar.sync 0;
    END:
    """
    with pytest.raises(Fault, match=r"barrier 0 is never complete|never execute it"):
        evaluate(code, np.arange(32, dtype=np.uint32))


def test_kernel_parameters_by_address() -> None:
    ptx = (
        HEAD
        + """
    .visible .entry k(.param .align 4 .b8 numbers[128], .param .u64 out)
    { .reg .b64 %a, %g, %o; .reg .b32 %i, %v, %w;
      mov.u32 %i, %tid.x; mov.b64 %a, numbers; mad.wide.u32 %a, %i, 4, %a;
      ld.param.u32 %v, [%a]; cvta.param.u64 %g, %a; ld.u32 %w, [%g]; add.u32 %v, %v, %w;
      ld.param.u64 %o, [out]; mad.wide.u32 %o, %i, 4, %o; st.global.u32 [%o], %v; ret; }
    """
    )
    numbers = np.arange(32, dtype=np.uint32) ** 2
    out = np.zeros(32, np.uint32)
    launch(ptx, "k", numbers.tobytes(), out)
    np.testing.assert_array_equal(out, 2 * numbers)
    with pytest.raises(Fault, match="param"):
        launch(ptx, "k", numbers.tobytes(), out, block=(40,))
