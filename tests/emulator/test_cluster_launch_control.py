"""clusterlaunchcontrol: running clusters take over clusters that have not started."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Options

import culaunch as cl

# Each block counts its visits: 1 as itself, 100 for a block that took its work over.
SOURCE = r"""
typedef unsigned long long u64;
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void meet() { __cluster_barrier_arrive(); __cluster_barrier_wait(); }
extern "C" __global__ void visit(unsigned* visits) {
  __shared__ __align__(16) u64 response[2];
  __shared__ u64 bar;
  dim3 inner = __clusterRelativeBlockIdx();
  unsigned x = blockIdx.x, y = blockIdx.y, z = blockIdx.z, number = 1, parity = 0, found;
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");
  for (;; number = 100, parity ^= 1) {
    if (threadIdx.x == 0) {
      atomicAdd(visits + x + gridDim.x * (y + gridDim.y * z), number);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;"
                   ::"r"(at(&bar)) : "memory");
    }
    meet();
    if (threadIdx.x == 0 && __clusterRelativeBlockRank() == 0)
      asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta"
                   ".mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%0], [%1];"
                   ::"r"(at(response)), "r"(at(&bar)) : "memory");
    asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra AGAIN; }" ::"r"(at(&bar)), "r"(parity) : "memory");
    asm volatile(
        "{ .reg .pred p; .reg .b128 r; ld.shared.b128 r, [%4];\n"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r; selp.u32 %3, 1, 0, p;\n"
        "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, _, _}, r;\n"
        "@p clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %2, r; }"
        : "+r"(x), "+r"(y), "+r"(z), "=r"(found) : "r"(at(response)) : "memory");
    x += inner.x, y += inner.y, z += inner.z;
    meet();
    if (!found) break;
  }
}
"""


@functools.cache
def ptx() -> str:
    return cl.compile(SOURCE, arch="compute_100a").data.decode()


def visits(**options: Any) -> np.ndarray:
    out = np.zeros((2, 6, 4), "u4")
    device = Device("sm_100", Options(time_limit=20, **options))
    launch(ptx(), "visit", out.reshape(-1), grid=(4, 6, 2), cluster=(2, 3, 1), device=device)
    return out


def test_the_first_clusters_take_over_all_others() -> None:
    # Six blocks of 32 threads run at once: a cluster.
    expected = np.full((2, 6, 4), 100)
    expected[0, :3, :2] = 1
    assert visits(lanes=192, check_races=True).tolist() == expected.tolist()


def test_nothing_is_left_when_all_clusters_run() -> None:
    assert (visits() == 1).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_each_cluster_runs_once_in_every_order(seed: int) -> None:
    out = visits(lanes=384, seed=seed)
    assert sorted(out.reshape(-1).tolist()) == [1] * 12 + [100] * 36
