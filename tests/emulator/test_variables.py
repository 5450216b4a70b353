"""Accesses that leave a shared variable and end in its neighbor."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Fault

import culaunch as cl

SOURCE = r"""
extern "C" __global__ void read(int* out, int i) {
  __shared__ int first[32], second[32], third[100];
  for (int k = threadIdx.x; k < 100; k += 32) {
    if (k < 32) first[k] = k, second[k] = 100 + k;
    third[k] = 200 + k;
  }
  __syncthreads();
  out[threadIdx.x] = second[i + (int)threadIdx.x] + first[0] + third[0];
}
extern "C" __global__ void write(int* out, int i) {
  __shared__ int first[32], second[32];
  second[threadIdx.x] = 7;
  __syncthreads();
  first[i + (int)threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}
extern "C" __global__ void count(int* out, int i) {
  __shared__ int first[32], second[32];
  first[threadIdx.x] = second[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&first[i + (int)threadIdx.x], 1);
  __syncthreads();
  out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}
extern "C" __global__ void dynamic(int* out, int i) {
  extern __shared__ int rest[];
  __shared__ int first[32];
  rest[threadIdx.x] = threadIdx.x;
  first[i + (int)threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = rest[31 - threadIdx.x] + first[threadIdx.x];
}
"""


@functools.cache
def ptx() -> str:
    image = cl.compile(SOURCE, arch="compute_80", line_info=True, name="variables.cu")
    return image.data.decode()


def run(kernel: str, i: int, **options: Any) -> np.ndarray:
    out = np.zeros(32, np.int32)
    options = {"check_variables": True, "check_uninitialized": False, **options}
    launch(ptx(), kernel, out, np.int32(i), shared=128 if kernel == "dynamic" else 0, **options)
    return out


@pytest.mark.parametrize(
    ("kernel", "i", "thread", "said"),
    [
        ("read", 1, 31, r"4-byte read .* 0 bytes after the end of the variable read.*second"),
        ("read", -2, 0, r"4-byte read .* 8 bytes before the variable read.*second of 128 bytes"),
        ("read", 24, 8, r"4-byte read .* 0 bytes after the end of the variable read.*second"),
        ("write", 4, 28, r"4-byte write .* 0 bytes after the end of the variable write.*first"),
        ("count", 2, 30, r"4-byte atomic access .* 0 bytes after the end of the variable count.*f"),
        ("dynamic", 3, 29, r"4-byte write .* 0 bytes after the end of the variable dynamic.*first"),
    ],
)
def test_an_access_to_a_neighbor_is_found(kernel: str, i: int, thread: int, said: str) -> None:
    with pytest.raises(Fault, match=said) as caught:
        run(kernel, i)
    fault = caught.value
    assert fault.thread == (thread, 0, 0)
    assert fault.source is not None
    assert "check_variables" in str(fault)


@pytest.mark.parametrize("kernel", ["read", "write", "count"])
def test_without_the_check_the_neighbor_is_reached(kernel: str) -> None:
    run(kernel, 1, check_variables=False)


@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        ("read", np.arange(32) + 300),
        ("write", np.full(32, 8)),
        ("count", np.ones(32)),
        ("dynamic", np.arange(32)[::-1] + 1),
    ],
)
@pytest.mark.parametrize("races", [False, True])
def test_a_right_kernel_has_the_same_results(kernel: str, wanted: np.ndarray, races: bool) -> None:
    np.testing.assert_array_equal(run(kernel, 0, check_races=races), wanted)
    np.testing.assert_array_equal(run(kernel, 0, check_variables=False), wanted)
