"""Launches that need a GPU: cubins, and files as the driver itself reads them."""

import numpy as np
import pytest

import culaunch as cl

pytestmark = pytest.mark.gpu


def scaled(module, name="scale<float>"):
    """Launch ``scale`` and give whether the result is right."""
    x = np.arange(300, dtype=np.float32)
    y = cl.empty(300, np.float32)
    module[name][3, 128](y, cl.to_device(x), 2.5, 300)
    return np.array_equal(y.numpy(), np.float32(2.5) * x)


@pytest.mark.parametrize("form", ["cubin", "fatbin", "ptx"])
def test_the_driver_itself_takes_a_saved_file(scale, cache, tmp_path, form):
    # The names' bytes go to the driver as well: as for a program that knows nothing of culaunch.
    arch = {"cubin": "native", "fatbin": ["sm_80", "native", "compute_80"], "ptx": "compute_80"}
    image = cl.compile(scale, arch=arch[form], names=["scale<float>"], cache=cache)
    path = tmp_path / f"kernel.{form}"
    image.save(path)
    whole = cl.Image(path.read_bytes())
    assert whole.data != image.data
    assert scaled(cl.load(whole), image.names["scale<float>"])


@pytest.mark.parametrize("kind", ["lto", "relocatable"])
def test_linked(cache, kind):
    caller = """
        extern "C" __device__ float twice(float x);
        extern "C" __global__ void k(float* y) { y[threadIdx.x] = twice(y[threadIdx.x]); }
    """
    callee = 'extern "C" __device__ float twice(float x) { return 2 * x; }'
    parts = [
        cl.compile(text, arch="native", cache=cache, **{kind: True}) for text in (caller, callee)
    ]
    y = cl.to_device(np.arange(32, dtype=np.float32))
    cl.load(cl.link(parts, cache=cache))["k"][1, 32](y)
    assert np.array_equal(y.numpy(), 2 * np.arange(32, dtype=np.float32))


def test_ptx_to_cubin(scale, cache):
    ptx = cl.compile(scale, arch="compute_80", names=["scale<float>"], cache=cache)
    image = cl.link(ptx, cache=cache)
    assert image.format == "cubin"
    assert scaled(cl.load(image))


def test_the_default_architecture_is_the_gpus(scale, cache):
    image = cl.compile(scale, names=["scale<float>"], cache=cache)
    assert image.arch == (cl.driver.devices()[0].arch,)
    assert scaled(cl.load(image))
