"""tile::gather4 and tile::scatter4: four rows of a matrix, each by its number."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault, Options
from matrix_maps import map_of

import culaunch as cl

# Four rows of one matrix become four rows of another.
SOURCE = r"""
typedef unsigned long long u64;
struct alignas(64) Map { u64 words[16]; };
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void rows(const __grid_constant__ Map in, const __grid_constant__ Map out,
                                unsigned char* raw, int bytes, int x, const int* from,
                                const int* to) {
  __shared__ __align__(1024) unsigned char part[1024];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%7], %8;\n"
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3, %4, %5, %6}], [%7];"
        ::"r"(at(part)), "l"(&in), "r"(x), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]),
        "r"(at(&bar)), "r"(bytes) : "memory");
  }
  __syncwarp();
  asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
               "@!p bra AGAIN; }" ::"r"(at(&bar)) : "memory");
  for (int i = threadIdx.x; i < bytes; i += 32) raw[i] = part[i];
  __syncwarp();
  if (threadIdx.x == 0)
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
        " [%1, {%2, %3, %4, %5, %6}], [%0];\n"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
        ::"r"(at(part)), "l"(&out), "r"(x), "r"(to[0]), "r"(to[1]), "r"(to[2]), "r"(to[3])
        : "memory");
}
"""


@functools.cache
def ptx() -> str:
    return cl.compile(SOURCE, arch="compute_100a").data.decode()


def matrix() -> np.ndarray:
    raw = np.zeros(10 * 24 + 4, "i4")
    start = -raw.ctypes.data % 16 // 4
    x = raw[start : start + 240].reshape(10, 24)
    x[...] = np.arange(1, 241).reshape(10, 24)
    return x


def run(columns: int, x: int, from_: Any, to: Any, rows: int = 1, swizzle: int = 0) -> Any:
    given, out = matrix(), -matrix()
    maps = [map_of(one, (rows, columns), swizzle) for one in (given, out)]
    raw = np.zeros((4, columns), "i4")
    launch(
        ptx(), "rows", *maps, raw.reshape(-1), np.int32(raw.nbytes), np.int32(x),
        np.array(from_, "i4"), np.array(to, "i4"), memory=(given, out),
        device=Device("sm_100", Options(check_races=True, time_limit=20)),
    )  # fmt: skip
    return given, raw, out


@pytest.mark.parametrize("x", [0, 8, 16])
def test_four_rows_in_and_out(x: int) -> None:
    given, raw, out = run(12, x, [7, 2, 2, 0], [1, 9, 3, 4])
    expected = np.zeros((4, 12), "i4")
    here = min(12, 24 - x)
    expected[:, :here] = given[[7, 2, 2, 0], x : x + here]
    assert raw.tolist() == expected.tolist()
    after = -given
    after[[1, 9, 3, 4], x : x + here] = expected[:, :here]
    assert out.tolist() == after.tolist()


def test_rows_outside_of_the_tensor() -> None:
    given, raw, out = run(4, 4, [-1, 9, 10, 3], [-1, 10, 0, 99])
    assert raw.tolist() == [[0] * 4, given[9, 4:8].tolist(), [0] * 4, given[3, 4:8].tolist()]
    after = -given
    after[0, 4:8] = 0
    assert out.tolist() == after.tolist()


def test_swizzled_rows() -> None:
    """Rows of 64 bytes: the second half of a swizzle's 128-byte lines changes its chunks."""
    given, raw, _ = run(16, 0, [5, 1, 8, 6], [0, 1, 2, 3], swizzle=2)
    chunks = given[[5, 1, 8, 6], :16].reshape(16, 4)
    place = [i ^ (i // 8 % 4) for i in range(16)]
    assert raw.reshape(16, 4)[place].tolist() == chunks.tolist()


def test_a_box_must_have_one_row() -> None:
    with pytest.raises(Fault, match="tile::gather4 needs a tensor map with boxes of one row"):
        run(4, 0, [0, 1, 2, 3], [0, 1, 2, 3], rows=2)
