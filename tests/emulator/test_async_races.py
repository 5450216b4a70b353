"""Races of bulk copies, of mbarriers and of named barriers."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault, Options

import culaunch as cl

SOURCE = r"""
typedef unsigned long long u64;
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, int n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory");
}
__device__ void arrive(u64* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(b)) : "memory");
}
__device__ void wait(u64* b, int parity) {
  asm volatile(
      "{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1, 0x989680;\n"
      "@!p bra AGAIN; }" ::"r"(at(b)), "r"(parity) : "memory");
}
__device__ void copy_in(int* to, const int* from, int bytes, u64* b) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      ::"r"(at(to)), "l"(from), "r"(bytes), "r"(at(b)) : "memory");
}
__device__ void copy_out(int* to, const int* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
               "cp.async.bulk.commit_group;" ::"l"(to), "r"(at(from)), "r"(bytes) : "memory");
}
#define WAIT(what) asm volatile("cp.async.bulk.wait_group" what ";" ::: "memory")

// How threads wait for a copy: 0 not at all, 1 all, 2 one and no barrier, 3 one and a barrier,
// 4 for the copy of another stage.
template <int how>
__device__ void load(int* out, const int* x) {
  __shared__ __align__(128) int box[2][64];
  __shared__ u64 bar[2];
  if (threadIdx.x == 0) { init(bar, 1); init(bar + 1, 1); }
  __syncthreads();
  if (threadIdx.x == 0) {
    copy_in(box[0], x, 256, bar);
    copy_in(box[1], x + 64, 256, bar + 1);
  }
  if (how == 0) __syncthreads();
  if (how == 1 || (how >= 2 && how < 4 && threadIdx.x == 0)) { wait(bar, 0); wait(bar + 1, 0); }
  if (how == 3) __syncthreads();
  if (how == 4) wait(bar, 0);
  out[threadIdx.x] = box[1][63 - threadIdx.x];
}
extern "C" __global__ void no_wait(int* out, const int* x) { load<0>(out, x); }
extern "C" __global__ void all_wait(int* out, const int* x) { load<1>(out, x); }
extern "C" __global__ void one_waits(int* out, const int* x) { load<2>(out, x); }
extern "C" __global__ void one_waits_for_all(int* out, const int* x) { load<3>(out, x); }
extern "C" __global__ void wrong_stage(int* out, const int* x) { load<4>(out, x); }

template <bool waits, bool all>
__device__ void store(int* out, const int* x) {
  __shared__ __align__(128) int box[64];
  box[threadIdx.x] = x[threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    copy_out(out, box, 256);
    if (waits) WAIT(".read 0");
    if (all) WAIT(" 0");
  }
  __syncthreads();
  box[threadIdx.x] = -1;
  if (waits) out[64 + threadIdx.x] = out[threadIdx.x];
}
extern "C" __global__ void source_changed(int* out, const int* x) { store<false, false>(out, x); }
extern "C" __global__ void target_read_early(int* out, const int* x) { store<true, false>(out, x); }
extern "C" __global__ void stored(int* out, const int* x) { store<true, true>(out, x); }

// Who fences its writes for the copy: 0 nobody, 1 the writers, 2 the copying thread. 3 and 4 it
// does so after it met the writers at a named barrier, or at an mbarrier. 5 the writers, too early.
// 6 one of the writers, before it meets the others.
template <int who>
__device__ void fenced(int* out, const int* x) {
  __shared__ __align__(128) int box[64];
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(&bar, 64);
  __syncthreads();
  if (who == 5) asm volatile("fence.proxy.async;" ::: "memory");
  box[threadIdx.x] = x[threadIdx.x];
  if (who == 1 || who == 6 && threadIdx.x == 0) asm volatile("fence.proxy.async;" ::: "memory");
  if (who == 3) asm volatile("bar.sync 1, 64;" ::: "memory");
  else if (who == 4) { arrive(&bar); if (threadIdx.x == 0) wait(&bar, 0); }
  else __syncthreads();
  if (threadIdx.x == 0) {
    if (who >= 2 && who <= 4) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    copy_out(out, box, 256);
    WAIT(" 0");
  }
}
extern "C" __global__ void fenced_by_nobody(int* out, const int* x) { fenced<0>(out, x); }
extern "C" __global__ void fenced_by_writers(int* out, const int* x) { fenced<1>(out, x); }
extern "C" __global__ void fenced_by_the_copier(int* out, const int* x) { fenced<2>(out, x); }
extern "C" __global__ void fenced_after_a_name(int* out, const int* x) { fenced<3>(out, x); }
extern "C" __global__ void fenced_after_arrivals(int* out, const int* x) { fenced<4>(out, x); }
extern "C" __global__ void fenced_too_early(int* out, const int* x) { fenced<5>(out, x); }
extern "C" __global__ void fenced_by_one_writer(int* out, const int* x) { fenced<6>(out, x); }

// Two threads store to one place: the same box, or boxes with different values.
template <bool same>
__device__ void twice(int* out, const int* x) {
  __shared__ __align__(128) int box[2][64];
  box[0][threadIdx.x] = x[threadIdx.x];
  box[1][threadIdx.x] = same ? x[threadIdx.x] : 0;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) copy_out(out, box[0], 256);
  if (threadIdx.x == 32) copy_out(out, box[1], 256);
  WAIT(" 0");
}
extern "C" __global__ void stored_twice(int* out, const int* x) { twice<true>(out, x); }
extern "C" __global__ void stored_over(int* out, const int* x) { twice<false>(out, x); }

// A ring of two stages: one warp copies, three others read. `frees` says whether they say so.
template <bool frees>
__device__ void ring(int* out, const int* x) {
  __shared__ __align__(128) int box[2][64];
  __shared__ u64 full[2], empty[2];
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; ++i) { init(full + i, 1); init(empty + i, 3); }
  __syncthreads();
  for (int k = 0; k < 6; ++k) {
    int stage = k % 2, phase = k / 2 % 2;
    if (threadIdx.x == 0) {
      if (frees) wait(empty + stage, phase ^ 1);
      copy_in(box[stage], x + 64 * k, 256, full + stage);
    } else if (threadIdx.x >= 32) {
      wait(full + stage, phase);
      int lane = threadIdx.x - 32;
      if (lane < 64) out[64 * k + lane] = box[stage][63 - lane];
      __syncwarp();
      if (frees && threadIdx.x % 32 == 0) arrive(empty + stage);
    }
  }
}
extern "C" __global__ void ring_of_stages(int* out, const int* x) { ring<true>(out, x); }
extern "C" __global__ void ring_overrun(int* out, const int* x) { ring<false>(out, x); }

// Warps 0 and 1 meet at a named barrier; warp 2 reads, and takes part or does not.
template <int threads>
__device__ void named(int* out, const int* x) {
  __shared__ int s[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) s[lane] = x[lane];
  if (warp < threads / 32) asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
  if (warp == 2) out[lane] = s[31 - lane];
}
extern "C" __global__ void not_at_the_barrier(int* out, const int* x) { named<64>(out, x); }
extern "C" __global__ void at_the_barrier(int* out, const int* x) { named<96>(out, x); }

// Warp 0 writes, and warp 2 reads. Warp 1 meets both, or each pair of warps is apart.
template <bool meets>
__device__ void relay(int* out, const int* x) {
  __shared__ int s[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) { s[lane] = x[lane]; asm volatile("barrier.arrive 1, 64;" ::: "memory"); }
  if (warp == 1) {
    asm volatile("barrier.sync 1, 64;" ::: "memory");
    if (meets) asm volatile("barrier.arrive 2, 64;" ::: "memory");
  }
  if (warp == 2) {
    if (meets) asm volatile("barrier.sync 2, 64;" ::: "memory");
    else asm volatile("barrier.sync 2, 32;" ::: "memory");
    out[lane] = s[31 - lane];
  }
}
extern "C" __global__ void apart_at_barriers(int* out, const int* x) { relay<false>(out, x); }
extern "C" __global__ void by_a_chain_of_barriers(int* out, const int* x) { relay<true>(out, x); }

// Warp 0 writes and arrives; warp 1 reads, and waits or does not.
template <bool waits>
__device__ void arrivals(int* out, const int* x) {
  __shared__ int s[32];
  __shared__ u64 bar;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) init(&bar, 32);
  __syncthreads();
  if (warp == 0) { s[lane] = x[lane]; arrive(&bar); }
  if (warp == 1) { if (waits) wait(&bar, 0); out[lane] = s[31 - lane]; }
  if (warp == 2) wait(&bar, 0);
}
extern "C" __global__ void not_at_the_mbarrier(int* out, const int* x) { arrivals<false>(out, x); }
extern "C" __global__ void at_the_mbarrier(int* out, const int* x) { arrivals<true>(out, x); }

// A warpgroup multiplies what one thread has copied; all elements are ones. 0 does not wait for the
// copy, 1 does. 2 writes a factor before the product is done, 3 afterwards. 4 writes one at first.
template <int how>
__device__ void product(int* out, const int* x) {
  __shared__ __align__(128) int box[576];
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(&bar, 1);
  __syncthreads();
  if (threadIdx.x == 0) copy_in(box, x, 2304, &bar);
  __syncthreads();
  if (how > 0) wait(&bar, 0);
  if (how == 4) { box[threadIdx.x] = 0x3c003c00; __syncthreads(); }
  u64 layout = (128ull >> 4) << 16 | (256ull >> 4) << 32;
  u64 a = layout | at(box) >> 4, b = layout | at(box + 512) >> 4;
  float d[4] = {0, 0, 0, 0};
  asm volatile(
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b) : "memory");
  if (how == 2 && threadIdx.x == 64) box[512] = 0;
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  if (how == 3 && threadIdx.x == 64) box[512] = 0;
  out[threadIdx.x] = d[0] + d[3];
}
extern "C" __global__ void product_too_early(int* out, const int* x) { product<0>(out, x); }
extern "C" __global__ void product_in_time(int* out, const int* x) { product<1>(out, x); }
extern "C" __global__ void factor_changed(int* out, const int* x) { product<2>(out, x); }
extern "C" __global__ void factor_reused(int* out, const int* x) { product<3>(out, x); }
extern "C" __global__ void factor_without_fence(int* out, const int* x) { product<4>(out, x); }
"""
X = np.arange(1, 385, dtype=np.int32)


@functools.cache
def ptx() -> str:
    return cl.compile(SOURCE, arch="compute_90a", line_info=True, name="async.cu").data.decode()


def run(kernel: str, **options: Any) -> np.ndarray:
    out = np.zeros(512, np.int32)
    options = {"check_races": True, "time_limit": 60, "check_uninitialized": False, **options}
    block = (128,) if "ring" in kernel else (96,) if "barrier" in kernel else (64,)
    device = Device("sm_90", Options(**options))
    launch(ptx(), kernel, out, X, block=block, device=device)
    return out


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("no_wait", "reads shared .* without waiting for a cp.async.bulk of .* which copies to it"),
        ("one_waits", "reads shared .* without waiting for a cp.async.bulk of thread"),
        ("wrong_stage", "reads shared .* without waiting for a cp.async.bulk of thread"),
        ("source_changed", "writes shared .* without waiting for .* which copies from it"),
        ("stored_over", "writes global .* without waiting for .* which copies to it"),
        ("target_read_early", "reads global .* without waiting for .* which copies to it"),
        ("ring_overrun", "writes shared .* without waiting for .* which copies to it"),
        ("not_at_the_barrier", r"reads shared .* thread \(\d+, 0, 0\) wrote with no barrier"),
        ("apart_at_barriers", r"reads shared .* thread \(\d+, 0, 0\) wrote with no barrier"),
        ("not_at_the_mbarrier", r"reads shared .* thread \(\d+, 0, 0\) wrote with no barrier"),
        ("fenced_by_nobody", r"reads through .* \(0, 0, 0\) wrote with no fence\.proxy\.async"),
        ("fenced_too_early", r"reads through .* \(0, 0, 0\) wrote with no fence\.proxy\.async"),
        ("fenced_by_one_writer", r"reads through .* shared address 0x4, which thread \(1, 0, 0\)"),
    ],
)
def test_who_did_not_wait_races(kernel: str, said: str) -> None:
    with pytest.raises(Fault, match="race: a thread " + said) as caught:
        run(kernel)
    fault = caught.value
    assert fault.source is not None
    assert re.search(r"the (copy|other access): block .* at PTX line \d+ \(source ", str(fault))
    # Without the check it does what one order of its copies does, or waits forever.
    if kernel != "ring_overrun":
        run(kernel, check_races=False)


@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        ("all_wait", X[127:63:-1]),
        ("one_waits_for_all", X[127:63:-1]),
        ("stored", np.tile(X[:64], 2)),
        ("stored_twice", X[:64]),
        ("fenced_by_writers", X[:64]),
        ("fenced_by_the_copier", X[:64]),
        ("fenced_after_a_name", X[:64]),
        ("fenced_after_arrivals", X[:64]),
        ("ring_of_stages", X.reshape(6, 64)[:, ::-1].reshape(-1)),
        ("at_the_barrier", X[31::-1]),
        ("by_a_chain_of_barriers", X[31::-1]),
        ("at_the_mbarrier", X[31::-1]),
    ],
)
def test_who_waited_does_not_race(kernel: str, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(run(kernel)[: len(wanted)], wanted)


def test_a_product_waits_for_its_factors() -> None:
    np.testing.assert_array_equal(multiply("product_in_time"), 32)
    with pytest.raises(Fault, match=r"reads shared .* without waiting for a cp\.async\.bulk"):
        multiply("product_too_early")
    with pytest.raises(Fault, match=r"reads through the asynchronous proxy .* fence\.proxy\.async"):
        multiply("factor_without_fence")


def test_a_factor_stays_until_its_product_is_done() -> None:
    np.testing.assert_array_equal(multiply("factor_reused"), 32)
    said = r"writes shared address 0x800 without waiting for a wgmma of thread .* which reads it"
    with pytest.raises(Fault, match=said) as caught:
        multiply("factor_changed")
    assert "the product: block (0, 0, 0), thread " in str(caught.value)


def multiply(kernel: str) -> np.ndarray:
    ones = np.full(1152, 1, np.float16).view(np.int32)
    out = np.zeros(128, np.int32)
    device = Device("sm_90", Options(check_races=True, check_uninitialized=False))
    launch(ptx(), kernel, out, ones, block=(128,), device=device)
    return out
