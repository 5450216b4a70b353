"""Clusters: their numbering, the shared memory of other blocks, and the barrier of all of them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault, Options

import culaunch as cl
from culaunch import testing

SOURCE = r"""
extern "C" __global__ void places(uint4* out) {
  unsigned linear = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  dim3 at = __clusterIdx(), inner = __clusterRelativeBlockIdx();
  dim3 count = __clusterGridDimInClusters();
  if (threadIdx.x == 0) {
    out[2 * linear] = make_uint4(at.x, at.y, at.z, __clusterRelativeBlockRank());
    out[2 * linear + 1] = make_uint4(inner.x, inner.y, inner.z,
                                     count.x + 100 * count.y + 10000 * count.z +
                                         1000000 * __clusterSizeInBlocks());
  }
}

// Every block reads what the next block of its cluster has written.
extern "C" __global__ void around(unsigned* out) {
  __shared__ unsigned box[32];
  unsigned rank = __clusterRelativeBlockRank(), size = __clusterSizeInBlocks();
  box[threadIdx.x] = 1000 * blockIdx.x + threadIdx.x;
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
  auto next = (unsigned*)__cluster_map_shared_rank(box, (rank + 1) % size);
  out[32 * blockIdx.x + threadIdx.x] =
      next[31 - threadIdx.x] + 1000000 * __cluster_query_shared_rank(next);
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
}

// A histogram whose bins are spread over the blocks, as the programming guide has it.
extern "C" __global__ void histogram(unsigned* bins, const unsigned* x, int n, int each) {
  extern __shared__ unsigned part[];
  unsigned rank = __clusterRelativeBlockRank(), size = __clusterSizeInBlocks();
  for (int i = threadIdx.x; i < each; i += blockDim.x) part[i] = 0;
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    auto there = (unsigned*)__cluster_map_shared_rank(part, x[i] / each);
    atomicAdd(there + x[i] % each, 1u);
  }
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
  for (int i = threadIdx.x; i < each; i += blockDim.x) atomicAdd(bins + rank * each + i, part[i]);
}

extern "C" __global__ void wrong(unsigned* out, int how) {
  __shared__ unsigned box[32];
  unsigned rank = __clusterRelativeBlockRank();
  box[threadIdx.x] = threadIdx.x;
  if (how == 0) __cluster_barrier_wait();
  if (how == 1) { __cluster_barrier_arrive(); __cluster_barrier_arrive(); }
  if (how == 2) {  // the block that is read has ended
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    if (rank == 1) asm volatile("exit;");
    out[threadIdx.x] = ((unsigned*)__cluster_map_shared_rank(box, 1))[threadIdx.x];
  }
  if (how == 3) out[threadIdx.x] = ((unsigned*)__cluster_map_shared_rank(box, 2))[threadIdx.x];
  if (how == 4) {
    out[threadIdx.x] = ((unsigned*)__cluster_map_shared_rank(box, 1))[threadIdx.x + 32];
  }
  if (how == 5 && rank == 0) {
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
  }
  if (how == 6) {  // nobody waits for what the other block writes
    unsigned* other = (unsigned*)__cluster_map_shared_rank(box, rank ^ 1);
    other[threadIdx.x] = 7 + rank;
    out[threadIdx.x] = box[threadIdx.x];
  }
}
"""


@functools.cache
def ptx() -> str:
    return cl.compile(SOURCE, arch="compute_90").data.decode()


def run(
    kernel: str,
    *arguments: Any,
    grid: tuple[int, ...],
    cluster: int | tuple[int, ...],
    shared: int = 0,
    block: int = 32,
    **options: Any,
) -> None:
    device = Device("sm_90", Options(check_races=True, **options))
    extents = (cluster,) if isinstance(cluster, int) else cluster
    how = {"grid": grid, "block": (block,), "cluster": extents, "shared": shared}
    launch(ptx(), kernel, *arguments, device=device, **how)


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [((4,), (2,)), ((4, 6, 2), (2, 3, 1)), ((2, 4, 4), (1, 2, 4)), ((3, 2), (1,)), ((16,), (16,))],
)
def test_blocks_know_their_cluster(grid: tuple[int, ...], cluster: tuple[int, ...]) -> None:
    gx, gy, gz = (*grid, 1, 1)[:3]
    cx, cy, cz = (*cluster, 1, 1)[:3]
    out = np.zeros((gx * gy * gz, 8), "u4")
    # Few lanes at once: whole clusters run together anyway.
    run("places", out.reshape(-1), grid=grid, cluster=cluster, lanes=64)
    expected = []
    for z, y, x in np.ndindex(gz, gy, gx):
        inner = x % cx, y % cy, z % cz
        rank = inner[0] + cx * (inner[1] + cy * inner[2])
        count = gx // cx + 100 * (gy // cy) + 10000 * (gz // cz) + 1000000 * cx * cy * cz
        expected.append([x // cx, y // cy, z // cz, rank, *inner, count])
    assert out.tolist() == expected


@pytest.mark.parametrize("cluster", [1, 2, 4, 8])
def test_a_block_reads_another_one_s_shared_memory(cluster: int) -> None:
    blocks = 16
    out = np.zeros((blocks, 32), "u4")
    run("around", out.reshape(-1), grid=(blocks,), cluster=cluster, lanes=128)
    for block in range(blocks):
        first = block // cluster * cluster
        rank = (block - first + 1) % cluster
        expected = 1000 * (first + rank) + 31 - np.arange(32) + 1000000 * rank
        assert out[block].tolist() == expected.tolist()


def test_a_histogram_over_a_cluster() -> None:
    x = np.random.default_rng(1).integers(0, 128, 5000).astype("u4")
    bins = np.zeros(128, "u4")
    sizes = np.int32(x.size), np.int32(32)
    run("histogram", bins, x, *sizes, grid=(8,), block=64, cluster=4, shared=128)
    assert bins.tolist() == np.bincount(x, minlength=128).tolist()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (0, "a thread waits without having arrived at the cluster's barrier"),
        (1, "a thread arrives twice with no wait in between at the cluster's barrier"),
        (2, "4-byte read of the shared memory of a block that has exited"),
        (3, "the block has 128 bytes of shared memory"),
        (4, "the block has 128 bytes of shared memory"),
        (6, "race: a thread"),
    ],
)
def test_what_is_wrong_with_a_cluster_is_said(how: int, words: str) -> None:
    out = np.zeros(32, "u4")
    with pytest.raises(Fault, match=words) as caught:
        run("wrong", out, np.int32(how), grid=(2,), cluster=2)
    assert caught.value.block is not None
    assert caught.value.position is not None


def test_threads_that_exit_are_not_waited_for() -> None:
    run("wrong", np.zeros(32, "u4"), np.int32(5), grid=(2,), cluster=2)


def test_a_barrier_that_is_never_complete_is_reported() -> None:
    text = (
        ptx().partition(".visible .entry")[0]
        + """
        .visible .entry k() {
        .reg .pred %p; .reg .b32 %r;
        mov.u32 %r, %cluster_ctarank; setp.eq.u32 %p, %r, 0;
        @%p bra WAIT;
        bar.sync 1, 64;
        WAIT: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret; }"""
    )
    with pytest.raises(Fault, match="barrier 1 is never complete: 32 of 64"):
        launch(text, "k", grid=(2,), block=(32,), cluster=(2,), device=Device("sm_90"))


@pytest.mark.parametrize(
    ("arch", "grid", "cluster", "code"), [("sm_80", 2, 2, 801), ("sm_90", 3, 2, 912)]
)
def test_a_cluster_that_cannot_be_is_refused(arch: str, grid: int, cluster: int, code: int) -> None:
    text = ptx().replace(".target sm_90", f".target {arch}").partition(".visible .entry")[0]
    text += ".visible .entry k() { ret; }"
    with pytest.raises(Fault) as caught:
        launch(text, "k", grid=(grid,), block=(32,), cluster=(cluster,), device=Device(arch))
    assert caught.value.code == code


# CUTLASS clears this bit of an address to name the even block of a pair.
NAMES = r"""
extern "C" __global__ void names(unsigned* out) {
  __shared__ unsigned box;
  unsigned own = (unsigned)__cvta_generic_to_shared(&box), even, same, self;
  unsigned rank = __clusterRelativeBlockRank();
  asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(even) : "r"(own & ~(1u << 24)));
  asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(self) : "r"(own));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(same) : "r"(own), "r"(rank));
  out[blockIdx.x] = even + 10 * self + 100 * (same == own);
}
"""


# The even block of the pair, the block itself, and whether `mapa` gives the same address.
NAMED = [100, 110, 122, 132]


def test_the_address_of_a_variable_names_its_block() -> None:
    text = cl.compile(NAMES, arch="compute_90").data.decode()
    out = np.zeros(4, "u4")
    launch(text, "names", out, device=Device("sm_90"), grid=(4,), block=(1,), cluster=(4,))
    assert out.tolist() == NAMED


@pytest.mark.gpu
def test_on_the_gpu_the_address_of_a_variable_names_its_block() -> None:
    with testing.use_driver("cuda"), cl.load(cl.compile(NAMES, arch="compute_90")) as module:
        out = cl.zeros(4, "uint32")
        module["names"].launch(out, grid=4, block=1, cluster=4)
        assert out.numpy().tolist() == NAMED


def test_an_offset_too_large_for_any_block_names_none() -> None:
    text = """
    .version 8.0
    .target sm_90
    .address_size 64
    .visible .entry k() {
        .shared .align 4 .b8 box[16]; .reg .b32 %r<2>;
        ld.shared.u32 %r1, [box+16777216]; ret;
    }
    """
    with pytest.raises(Fault, match="shared address 0x1000000: the block has 16 bytes"):
        launch(text, "k", device=Device("sm_90"), grid=(2,), cluster=(2,))
