"""Images that are compiled and linked while the emulator is selected have PTX."""

import numpy as np
import pytest

import culaunch as cl
from culaunch import testing

CALLER = """
extern "C" __device__ float twice(float x);
extern "C" __global__ void k(float* y) { y[threadIdx.x] = twice(y[threadIdx.x]); }
"""
CALLEE = 'extern "C" __device__ float twice(float x) { return 2 * x; }'


@pytest.fixture(autouse=True)
def emulator():
    with testing.use_driver("emulator"):
        yield


def runs(image):
    y = np.ones(4, np.float32)
    cl.load(image)["k"][1, 4](y)
    return y.tolist() == [2.0] * 4


@pytest.mark.parametrize(
    ("arch", "found"),
    [
        ("sm_80", ("sm_80", "compute_80")),
        (["sm_80", "sm_90"], ("sm_80", "sm_90", "compute_80", "compute_90")),
        ("compute_75", ("compute_75",)),
    ],
    ids=str,
)
def test_an_architecture_that_is_named_comes_with_ptx(cache, arch, found):
    image = cl.compile(CALLEE + CALLER, arch=arch, cache=cache)
    assert image.arch == found
    assert runs(image)


@pytest.mark.parametrize("arch", [None, "sm_80"])
def test_parts_with_lto_are_linked_to_ptx(cache, arch):
    parts = [cl.compile(source, arch=arch, lto=True, cache=cache) for source in (CALLER, CALLEE)]
    image = cl.link(parts, arch=arch, cache=cache)
    assert "compute_80" in image.arch
    assert runs(image)


def test_relocatable_parts_cannot_be_and_the_remedy_is_named(cache):
    parts = [cl.compile(source, relocatable=True, cache=cache) for source in (CALLER, CALLEE)]
    with pytest.raises(ValueError, match=r"the emulator executes PTX: .* with lto=True"):
        cl.link(parts, cache=cache)
    with pytest.raises(cl.DriverError) as caught:
        cl.load(parts[0])
    assert caught.value.code == 218  # as the compiler in NVIDIA's driver answers
    assert "k calls 'twice', which the image does not define" in str(caught.value)
    assert "culaunch.link" in str(caught.value)
    cl.load(parts[1])


def test_a_wrong_choice_of_driver_is_named(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulater")
    with pytest.raises(ValueError, match=r"CULAUNCH_DRIVER must be .* 'emulater'"):
        cl.compile(CALLEE)
