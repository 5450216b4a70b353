"""The speed that is promised, in processor time of a machine that is not slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from corpus._basics import matmul_arguments
from corpus._case import cuda
from emulate import image_of, launch
from emulator_internals import Device, PtxImage

import culaunch as cl

if TYPE_CHECKING:
    from collections.abc import Callable


def test_vector_add_of_a_million(processor_time: Callable[..., float]) -> None:
    device, n = Device(), 1 << 20
    module = device.load(image_of(cuda("basics.cu")))
    a, b, c = np.arange(n, dtype=np.float32), np.ones(n, np.float32), np.zeros(n, np.float32)

    def run() -> None:
        how = {"grid": (n // 256,), "block": (256,), "device": device, "module": module}
        launch("", "vector_add", a, b, c, np.int32(n), **how)

    assert processor_time(run) < 0.3
    np.testing.assert_array_equal(c, a + b)


@pytest.mark.slow
def test_matmul_of_256(processor_time: Callable[..., float]) -> None:
    device = Device()
    module = device.load(image_of(cuda("basics.cu")))
    arguments = matmul_arguments(256, np.random.default_rng(0))

    def run() -> None:
        how = {"grid": (16, 16), "block": (16, 16), "device": device, "module": module}
        launch("", "tiled_matmul", *arguments, **how)

    assert processor_time(run, 2) < 5


@pytest.mark.slow
def test_a_module_with_curand_s_tables_loads_in_half_a_second(
    processor_time: Callable[..., float],
) -> None:
    source = """#include <curand_kernel.h>
    extern "C" __global__ void draw(float* out) {
      curandStateXORWOW_t state;
      curand_init(1, threadIdx.x, 0, &state);
      out[threadIdx.x] = curand_uniform(&state);
    }"""
    text = cl.compile(source, arch="compute_80").data.decode()
    assert processor_time(lambda: Device().load(PtxImage(text))) < 0.5
