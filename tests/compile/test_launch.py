"""Compiled images are launched, on the GPU and on the emulated driver."""

import numpy as np
import pytest

import culaunch as cl


@pytest.fixture(params=[pytest.param("cuda", marks=pytest.mark.gpu), "emulator"], autouse=True)
def driver(request, monkeypatch):
    """Launch on each driver."""
    monkeypatch.setenv("CULAUNCH_DRIVER", request.param)
    try:
        return cl.driver.driver_name()
    except cl.DriverNotFoundError:
        if request.param == "cuda":
            raise
        pytest.skip("needs culaunch._emulator")


def scaled(module, name="scale<float>"):
    """Launch ``scale`` and give whether the result is right."""
    x = np.arange(300, dtype=np.float32)
    y = cl.empty(300, np.float32)
    module[name][3, 128](y, cl.to_device(x), 2.5, 300)
    return np.array_equal(y.numpy(), np.float32(2.5) * x)


def test_name_expressions(scale, cache):
    names = ["scale<float>", "ns::fill<3, int>"]
    for _ in range(2):  # the second one from the cache
        module = cl.load(cl.compile(scale, names=names, cache=cache))
        assert scaled(module)
        y = cl.empty(32, np.int32)
        module["ns::fill<3, int>"][1, 32](y)
        assert (y.numpy() == 3).all()


def test_extern_c_kernels_check_their_arguments(cache):
    source = 'extern "C" __global__ void plain(double* y, float a, unsigned char c) { *y = a + c; }'
    kernel = cl.load(cl.compile(source, cache=cache))["plain"]
    y = cl.empty(1, np.float64)
    kernel[1, 1](y, 1.5, 200)
    assert y.numpy()[0] == 201.5
    with pytest.raises(OverflowError):
        kernel[1, 1](y, 1.5, 256)
    with pytest.raises(TypeError):
        kernel[1, 1](cl.empty(1, np.float32), 1.5, 1)


@pytest.mark.parametrize("form", ["cubin", "fatbin", "ptx"])
def test_a_saved_file_with_names(scale, cache, tmp_path, driver, form):
    if driver == "emulator" and form == "cubin":
        form = "ptx"  # it executes PTX only
    virtual = "compute_80"
    arch = {"cubin": "native", "fatbin": ["sm_80", "native", virtual], "ptx": virtual}[form]
    image = cl.compile(scale, arch=arch, names=["scale<float>"], cache=cache)
    path = tmp_path / f"kernel.{form}"
    image.save(path)
    assert path.stat().st_size > len(image.data)
    assert scaled(cl.load(path))
    assert scaled(cl.load(path.read_bytes()))


def test_headers_and_macros(cache):
    headers = {"my/a.h": '#include "b.h"\n', "my/b.h": "#define B (A + 1)\n"}
    source = '#include "my/a.h"\nextern "C" __global__ void k(int* x) { *x = B; }'
    image = cl.compile(source, headers=headers, defines={"A": 41}, cache=cache)
    x = cl.empty(1, np.int32)
    cl.load(image)["k"][1, 1](x)
    assert x.numpy()[0] == 42


def test_half_precision(cache):
    source = """
        #include <cuda_fp16.h>
        extern "C" __global__ void k(__half* y, const __half* x) {
          y[threadIdx.x] = __hadd(x[threadIdx.x], x[threadIdx.x]);
        }
    """
    x = np.arange(32, dtype=np.float16)
    y = cl.empty(32, np.float16)
    cl.load(cl.compile(source, cache=cache))["k"][1, 32](y, cl.to_device(x))
    assert np.array_equal(y.numpy(), 2 * x)


@pytest.mark.slow
def test_cub(cache):
    source = """
        #include <cub/block/block_reduce.cuh>
        extern "C" __global__ void k(const float* x, float* sum) {
          using Reduce = cub::BlockReduce<float, 128>;
          __shared__ typename Reduce::TempStorage storage;
          float total = Reduce(storage).Sum(x[threadIdx.x]);
          if (threadIdx.x == 0) *sum = total;
        }
    """
    total = cl.empty(1, np.float32)
    x = np.arange(128, dtype=np.float32)
    cl.load(cl.compile(source, pch=True, cache=cache))["k"][1, 128](cl.to_device(x), total)
    assert total.numpy()[0] == x.sum()


@pytest.mark.slow
@pytest.mark.needs("nvcc", "g++")
def test_nvcc(scale, cache):
    image = cl.compile(scale, names=["scale<float>"], backend="nvcc", cache=cache)
    assert scaled(cl.load(image))


def test_many(scale, cache):
    requests = [{"source": scale, "names": [name]} for name in ("scale<float>", "scale<double>")]
    first, _ = cl.compiling.compile_many(requests, cache=cache)
    assert scaled(cl.load(first))
