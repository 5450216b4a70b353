"""cp.async.bulk.tensor with cta_group::2: which block of a pair counts the bytes of a copy."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Options

import culaunch as cl
from culaunch._emulator.memory.tensor_map import TensorMap

# Blocks wait for the bytes of their pair where `waits` has their bit; then all copy what they have.
SOURCE = r"""
typedef unsigned long long u64;
struct alignas(64) Map { u64 words[16]; };
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void meet() { __cluster_barrier_arrive(); __cluster_barrier_wait(); }
extern "C" __global__ void pairs(const __grid_constant__ Map in, unsigned* out, unsigned kept,
                                 unsigned waits, int alone) {
  __shared__ __align__(128) unsigned part[32];
  __shared__ u64 bar;
  unsigned rank = __clusterRelativeBlockRank(), place = at(&bar) & kept;
  part[threadIdx.x] = 0;
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");
  meet();
  if (threadIdx.x == 0 && waits >> rank & 1)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;"
                 ::"r"(at(&bar)) : "memory");
  if (threadIdx.x == 0 && alone)
    asm volatile("cp.async.bulk.tensor.1d.cta_group::2.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                 ::"r"(at(part)), "l"(&in), "r"(32 * rank), "r"(place) : "memory");
  if (threadIdx.x == 0 && !alone && rank == 1)
    asm volatile("cp.async.bulk.tensor.1d.cta_group::2.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2}], [%3], %4;"
                 ::"r"(at(part)), "l"(&in), "r"(32), "r"(place), "h"((short)15) : "memory");
  if (waits >> rank & 1)
    asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
                 "@!p bra AGAIN; }" ::"r"(at(&bar)) : "memory");
  meet();
  out[32 * rank + threadIdx.x] = part[threadIdx.x];
}
"""
EVEN_BLOCK = 0xFEFFFFFF  # as in CUTLASS: without the lowest bit of the rank


@functools.cache
def ptx() -> str:
    return cl.compile(SOURCE, arch="compute_100a").data.decode()


@pytest.mark.parametrize(
    ("kept", "waits", "alone"),
    [(EVEN_BLOCK, 0b0101, 0), (0xFFFFFFFF, 0b1010, 0), (EVEN_BLOCK, 0b0101, 1)],
)
def test_bytes_are_counted_in_one_block_of_each_pair(kept: int, waits: int, alone: int) -> None:
    raw = np.zeros(132, "u4")
    x = raw[-raw.ctypes.data % 16 // 4 :][:128]
    x[:] = np.arange(1, 129)
    tensor = TensorMap(2, 0, 0, 0, x.ctypes.data, (128,), (4,), (32,), (1,)).pack()
    out = np.zeros((4, 32), "u4")
    launch(
        ptx(), "pairs", tensor, out.reshape(-1), np.uint32(kept), np.uint32(waits),
        np.int32(alone), grid=(4,), cluster=(4,), memory=(raw,),
        device=Device("sm_100", Options(time_limit=20)),
    )  # fmt: skip
    expected = x.reshape(4, 32) if alone else np.tile(x[32:64], (4, 1))
    assert out.tolist() == expected.tolist()
