"""cp.async.bulk: runs of bytes and boxes of tensors, with mbarriers that count their bytes."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import pytest
from driver_table import Table
from emulate import launch
from emulator_internals import Device, Fault, Options
from matrix_maps import map_of

import culaunch as cl
from culaunch import testing

SOURCE = r"""
typedef unsigned long long u64;
struct alignas(64) Map { u64 words[16]; };
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64* b, int n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory");
}
__device__ void expect(u64* b, int n) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(n)
               : "memory");
}
__device__ void wait(u64* b, int parity) {
  asm volatile(
      "{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1, 0x989680;\n"
      "@!p bra AGAIN; }" ::"r"(at(b)), "r"(parity)
      : "memory");
}

// Through shared memory and back, in two stages.
extern "C" __global__ void copy(int* to, const int* from, int bytes) {
  extern __shared__ __align__(128) int box[];
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(&bar, 1);
  __syncthreads();
  for (int stage = 0; stage < 2; ++stage) {
    if (threadIdx.x == 0) {
      expect(&bar, bytes);
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
          ::"r"(at(box)), "l"(from + stage * bytes / 4), "r"(bytes), "r"(at(&bar)) : "memory");
    }
    wait(&bar, stage);
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) box[i] += 1000 * stage + 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0)
      asm volatile(
          "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
          "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"
          ::"l"(to + stage * bytes / 4), "r"(at(box)), "r"(bytes) : "memory");
    __syncthreads();
  }
}

extern "C" __global__ void add(int* to, const int* from) {
  __shared__ __align__(128) int box[64];
  box[threadIdx.x] = from[blockIdx.x * 64 + threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0)
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 256;\n"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::"l"(to), "r"(at(box))
        : "memory");
}

// The first block of a cluster copies to those of a mask.
extern "C" __global__ void spread(int* out, const int* from, int mask) {
  __shared__ __align__(128) int box[64];
  __shared__ u64 bar;
  unsigned rank = __clusterRelativeBlockRank();
  if (threadIdx.x == 0) init(&bar, 1);
  box[threadIdx.x] = -1;
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
  bool gets = mask >> rank & 1;
  if (threadIdx.x == 0 && gets) expect(&bar, 256);
  if (threadIdx.x == 0 && rank == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1], 256, [%2], %3;"
        ::"r"(at(box)), "l"(from), "r"(at(&bar)), "h"((short)mask) : "memory");
  if (gets) wait(&bar, 0);
  out[64 * rank + threadIdx.x] = box[threadIdx.x];
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
}

// Shared memory as a box leaves it, and the box written elsewhere.
extern "C" __global__ void tile(const __grid_constant__ Map in, const __grid_constant__ Map out,
                                unsigned char* raw, int bytes, int x, int y, int add) {
  extern __shared__ __align__(1024) unsigned char part[];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(&bar, 1);
    expect(&bar, bytes);
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];"
        ::"r"(at(part)), "l"(&in), "r"(x), "r"(y), "r"(at(&bar)) : "memory");
  }
  __syncthreads();
  wait(&bar, 0);
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) raw[i] = part[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    if (add)
      asm volatile(
          "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
          " [%0, {%1, %2}], [%3];"
          ::"l"(&out), "r"(x), "r"(y), "r"(at(part)) : "memory");
    else
      asm volatile(
          "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
          ::"l"(&out), "r"(x), "r"(y), "r"(at(part)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
"""


@functools.cache
def ptx() -> str:
    return cl.compile(SOURCE, arch="compute_90").data.decode()


def run(kernel: str, *arguments: Any, **how: Any) -> None:
    device = Device("sm_90", Options(check_races=True, time_limit=20))
    launch(ptx(), kernel, *arguments, device=device, **how)


@pytest.mark.parametrize("size", [16, 64, 4096])
def test_runs_of_bytes_in_and_out(size: int) -> None:
    x = np.arange(size // 2, dtype="i4")
    y = np.full_like(x, -5)
    run("copy", y, x, np.int32(size), shared=size)
    half = x.size // 2
    assert y.tolist() == [*(x[:half] + 1), *(x[half:] + 1001)]


def test_a_reduction_into_global_memory() -> None:
    x = np.random.default_rng(2).integers(-100, 100, (8, 64)).astype("i4")
    y = np.arange(64, dtype="i4")
    expected = y + x.sum(axis=0)
    run("add", y, x.reshape(-1), grid=(8,), block=(64,))
    assert y.tolist() == expected.tolist()


@pytest.mark.parametrize("mask", [0b1, 0b10, 0b1011, 0b1111])
def test_one_copy_for_several_blocks(mask: int) -> None:
    x = np.arange(64, dtype="i4") + 7
    out = np.zeros((4, 64), "i4")
    run("spread", out.reshape(-1), x, np.int32(mask), grid=(4,), block=(64,), cluster=(4,))
    for rank in range(4):
        assert out[rank].tolist() == (x.tolist() if mask >> rank & 1 else [-1] * 64)


def aligned(shape: tuple[int, int], dtype: str) -> np.ndarray:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 16, "u1")
    start = -raw.ctypes.data % 16
    return raw[start : start + size].view(dtype).reshape(shape)


@pytest.mark.parametrize(
    ("dtype", "box", "swizzle"),
    [
        ("f4", (8, 4), 0),
        ("f2", (16, 64), 3),
        ("f2", (8, 32), 2),
        ("f2", (8, 16), 1),
        ("u1", (4, 128), 3),
        ("f2", (16, 64), 4),
        ("f4", (8, 32), 6),
    ],
)
@pytest.mark.parametrize("corner", [(0, 0), (3, 16), (-2, -16), (40, 80)])
def test_boxes_of_a_tensor(
    dtype: str, box: tuple[int, int], swizzle: int, corner: tuple[int, int]
) -> None:
    random = np.random.default_rng(4)
    x = aligned((48, 96), dtype)
    x[...] = random.integers(1, 200, x.shape)
    raw = np.zeros(box[0] * box[1] * x.itemsize, "u1")
    y = aligned((48, 96), dtype)
    place = np.int32(corner[1]), np.int32(corner[0])
    run(
        "tile", map_of(x, box, swizzle), map_of(y, box, swizzle), raw, np.int32(raw.size), *place,
        np.int32(0), shared=raw.size, memory=(x, y),
    )  # fmt: skip
    # By another way: a frame of zeros around the tensor, and a slice of it.
    framed = np.zeros((48 + 512, 96 + 512), dtype)
    framed[256:-256, 256:-256] = x
    rows, columns = (slice(256 + c, 256 + c + b) for c, b in zip(corner, box, strict=True))
    expected = np.ascontiguousarray(framed[rows, columns]).view("u1").reshape(-1)
    # The manual's picture of a swizzle: in row r of 128 bytes, chunk c is at c ^ (r % 8).
    size, span = {0: (16, 0), 1: (16, 32), 2: (16, 64), 3: (16, 128), 4: (32, 128), 6: (64, 128)}[
        swizzle
    ]
    if span:
        chunks, across = expected.reshape(-1, size), span // size
        shuffled = np.zeros_like(chunks)
        for i in range(len(chunks)):
            row, column = divmod(i, across)
            shuffled[row * across + (column ^ row * span // 128 % across)] = chunks[i]
        expected = shuffled.reshape(-1)
    assert raw.tolist() == expected.tolist()
    back = np.zeros_like(framed)
    back[rows, columns] = framed[rows, columns]
    assert (y == back[256:-256, 256:-256]).all()


def test_a_box_is_added_to_a_tensor() -> None:
    x, y = aligned((16, 16), "f4"), aligned((16, 16), "f4")
    x[...], y[...] = np.arange(256).reshape(16, 16), 0.5
    raw = np.zeros(8 * 4 * 4, "u1")
    maps = map_of(x, (8, 4), 0), map_of(y, (8, 4), 0)
    run(
        "tile",
        *maps,
        raw,
        np.int32(raw.size),
        np.int32(4),
        np.int32(12),
        np.int32(1),
        shared=512,
        memory=(x, y),
    )
    expected = np.full((16, 16), 0.5, "f4")
    expected[12:, 4:8] += x[12:, 4:8]
    assert y.tolist() == expected.tolist()


def test_what_is_outside_can_be_nan() -> None:
    x, y = aligned((8, 8), "f4"), aligned((8, 8), "f4")
    raw = np.zeros(4 * 4 * 4, "u1")
    maps = map_of(x[:, :6], (4, 4), 0, fill=1), map_of(y, (4, 4), 0)
    run(
        "tile",
        *maps,
        raw,
        np.int32(64),
        np.int32(4),
        np.int32(0),
        np.int32(0),
        shared=512,
        memory=(x, y),
    )
    assert np.isnan(raw.view("f4").reshape(4, 4)).tolist() == [[False, False, True, True]] * 4
    assert raw.view("u4")[3] == 0x7FF77FF7  # as an H200 fills


def test_the_innermost_element_stride_is_ignored() -> None:
    x, y = aligned((8, 8), "f4"), aligned((8, 8), "f4")
    x[...] = np.arange(64).reshape(8, 8)
    encoded = (ctypes.c_ubyte * 128)()
    numbers, sizes = ctypes.c_size_t * 2, ctypes.c_uint * 2
    code = Table("sm_90")(
        "cuTensorMapEncodeTiled", encoded, 7, 2, x.ctypes.data, numbers(8, 8), numbers(32),
        sizes(4, 4), sizes(2, 1), 0, 0, 0, 0,
    )  # fmt: skip
    assert code == 0
    raw = np.zeros(64, "u1")
    run(
        "tile", bytes(encoded), map_of(y, (4, 4), 0), raw, np.int32(64), np.int32(4), np.int32(0),
        np.int32(0), shared=512, memory=(x, y),
    )  # fmt: skip
    assert raw.view("f4").tolist() == x[:4, 4:].reshape(-1).tolist()


@pytest.mark.gpu
def test_the_gpu_ignores_the_innermost_element_stride() -> None:
    x = np.arange(64, dtype="f4").reshape(8, 8)
    with testing.use_driver("cuda"), cl.load(cl.Image(ptx().encode())) as module:
        given, out, raw = cl.to_device(x), cl.to_device(x), cl.zeros(64, "uint8")
        maps = (
            cl.arguments.TensorMap.tiled(one, (4, 4), element_strides=(1, step))
            for one, step in ((given, 2), (out, 1))
        )
        module["tile"].launch(*maps, raw.address, 64, 4, 0, 0, grid=1, block=32, shared_memory=512)
        assert raw.numpy().view("f4").tolist() == x[:4, 4:].reshape(-1).tolist()


@pytest.mark.parametrize(
    ("kernel", "arguments", "words"),
    [
        ("copy", (np.zeros(64, "i4"), np.zeros(64, "i4"), np.int32(24)), "size of a bulk copy"),
        ("copy", (np.zeros(64, "i4"), np.zeros(8, "i4"), np.int32(64)), "outside"),
    ],
)
def test_what_is_wrong_with_a_copy_is_said(kernel: str, arguments: Any, words: str) -> None:
    with pytest.raises(Fault, match=words):
        run(kernel, *arguments, shared=128)


def test_a_wait_for_bytes_that_nobody_copies_is_reported() -> None:
    text = (
        ptx().partition(".visible .entry")[0]
        + """
        .visible .entry k() {
        .reg .pred %p; .shared .align 8 .b64 bar;
        mbarrier.init.shared.b64 [bar], 1;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
        AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
        @!%p bra AGAIN; ret; }"""
    )
    with pytest.raises(Fault) as caught:
        launch(text, "k", block=(1,), device=Device("sm_90", Options(time_limit=0.2)))
    assert caught.value.code == 702
