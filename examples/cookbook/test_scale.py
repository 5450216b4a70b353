"""Tests of a kernel: once on the emulator, and once on the GPU if there is one."""

import numpy as np
import pytest

import culaunch as cl
from culaunch import testing

SOURCE = """
extern "C" __global__ void scale(float* y, const float* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}
"""


@pytest.mark.parametrize("n", [1, 31, 256, 1000])
def test_scale(culaunch_driver, n):
    kernel = cl.load(cl.compile(SOURCE))["scale"]
    x = np.random.default_rng(n).standard_normal(n, np.float32)
    y = testing.to_driver(np.zeros_like(x))
    with testing.emulator_options(check_races=True, time_limit=60):
        kernel[cl.ceildiv(n, 256), 256](y, testing.to_driver(x), 2.0, n)
    testing.assert_allclose(y, 2 * x)


@pytest.mark.culaunch_drivers("emulator")  # on a GPU a fault would end the process's use of it
def test_it_stays_in_its_array(culaunch_driver):
    kernel = cl.load(cl.compile(SOURCE))["scale"]
    x = testing.to_driver(np.zeros(10, np.float32))
    with pytest.raises(cl.DriverError, match="ILLEGAL_ADDRESS"):
        kernel[1, 256](x, x, 2.0, 11)  # one more than there are


def test_wrong_arguments_are_refused(culaunch_driver):
    kernel = cl.load(cl.compile(SOURCE))["scale"]
    x = testing.to_driver(np.zeros(10))
    with pytest.raises(TypeError, match="must be an array of float32"):
        kernel[1, 256](x, x, 2.0, 10)
