"""A strict emulator refuses what a GPU refuses, with the same words."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import culaunch as cl
from culaunch import testing

PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry set(.param .u64 to) {
.reg .b64 %to; ld.param.u64 %to, [to]; st.global.u32 [%to], 7; ret;
}
"""
WHOSE = "must be in the memory of the driver in use, 'emulator'"
WORDS = rf"{WHOSE} \(got .* in the CPU's memory\): move it with its framework \(tensor\.cuda\(\)\)"


@pytest.fixture
def strict():
    with testing.use_driver("emulator", strict=True):
        yield


@pytest.fixture
def kernel(strict):
    return cl.load(PTX)["set"]


@pytest.fixture(params=["numpy", "pinned", "structured", "torch", "jax"])
def host_array(request):
    if request.param == "torch":
        return pytest.importorskip("torch").zeros(4)
    if request.param == "jax":
        return pytest.importorskip("jax").numpy.zeros(4)
    if request.param == "pinned":
        return cl.pinned(4)
    return np.zeros(4, [("a", "f4")] if request.param == "structured" else "f4")


def test_arrays_of_the_host_are_refused(kernel, host_array):
    for _ in range(2):
        with pytest.raises(ValueError, match=WORDS):
            kernel[1, 1](host_array)


def test_the_devices_own_arrays_are_taken(kernel):
    array = cl.to_device(np.zeros(4, np.uint32))
    for given in (array, array[:1], array.address):
        array.fill(0)
        kernel[1, 1](given)
        assert array.numpy().tolist() == [7, 0, 0, 0]
    managed = cl.managed(4, "uint32")
    managed.on_host()[:] = 1
    kernel[1, 1](managed)
    assert managed.on_host().tolist() == [7, 1, 1, 1]
    with pytest.raises(ValueError, match="the host can read only managed memory"):
        array.on_host()
    assert not hasattr(array, "__cuda_array_interface__")
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(array)


@pytest.mark.needs("nvrtc")
def test_functions_and_fused_kernels_refuse_them_too(strict):
    import culaunch.elementwise as ew

    kernel = cl.load(PTX)["set"]

    @cl.function
    def call(x):
        kernel[1, 1](x)

    array = cl.zeros(4, "uint32")
    call(array)
    assert array.numpy()[0] == 7
    for _ in range(2):
        with pytest.raises((TypeError, ValueError), match=r"of DLPack type 1.*culaunch\.to_device"):
            call(np.zeros(4, np.uint32))
    double = ew.fuse(lambda x: 2 * x)
    assert double(array).numpy()[0] == 14
    with pytest.raises((TypeError, ValueError), match=r"of DLPack type 1.*culaunch\.to_device"):
        double(np.zeros(4, np.uint32))


@pytest.mark.needs("torch", "triton")
def test_triton_refuses_tensors_of_the_host(strict):
    import torch
    from view_kernels import last_of

    from culaunch.triton import native

    x, out = cl.to_device(np.arange(8, dtype=np.int32)), cl.zeros(2, "int32")
    kernel = native(last_of)
    for _ in range(3):
        kernel[(2,)](x, out, 4)
        assert out.numpy().tolist() == [3, 7]
        with pytest.raises(ValueError, match=WHOSE):
            kernel[(2,)](torch.zeros(8, dtype=torch.int32), out, 4)
        with pytest.raises(ValueError, match=WHOSE):
            kernel[(2,)](x, torch.zeros(2, dtype=torch.int32), 4)


def test_a_test_for_a_gpu_runs_on_it(kernel):
    x = testing.to_driver(np.zeros(4, np.uint32))
    assert isinstance(x, cl.DeviceArray)
    kernel[1, 1](x)
    testing.assert_allclose(x, [7, 0, 0, 0])
    assert isinstance(testing.from_driver(x), np.ndarray)


@pytest.mark.needs("torch")
def test_torch_has_no_tensors_there(strict):
    import torch

    with pytest.raises(TypeError, match=r"memory of a strict emulator.*tensor\.numpy\(\)"):
        testing.to_driver(torch.zeros(3))


def test_the_choice_is_the_environments_at_any_time(monkeypatch):
    """Both have one device: a module belongs to the driver that was in use when it was loaded."""
    x = np.zeros(1, np.uint32)
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    lenient = cl.load(PTX)["set"]
    for _ in range(2):
        monkeypatch.setenv("CULAUNCH_EMULATOR_STRICT", "1")
        strict = cl.load(PTX)["set"]
        assert cl.driver.driver_name() == "emulator"
        with pytest.raises(ValueError, match=WORDS):
            strict[1, 1](x)
        assert cl.zeros(1).__dlpack_device__() != (1, 0)
        monkeypatch.setenv("CULAUNCH_EMULATOR_STRICT", "0")
        assert cl.zeros(1).__dlpack_device__() == (1, 0)
        cl.load(PTX)["set"][1, 1](x)
        lenient[1, 1](x)
        assert x[0] == 7
    monkeypatch.setenv("CULAUNCH_EMULATOR_STRICT", "yes")
    with pytest.raises(ValueError, match=r"CULAUNCH_EMULATOR_STRICT must be 0 or 1 \(got 'yes'\)"):
        cl.zeros(1)


def test_a_block_ends_with_the_choice_before():
    before = {
        name: os.environ.get(name) for name in ("CULAUNCH_EMULATOR_STRICT", "CULAUNCH_DRIVER")
    }
    with testing.use_driver("emulator", strict=True):
        with testing.use_driver("emulator"):
            assert cl.zeros(1).__dlpack_device__() != (1, 0)
        with testing.use_driver("emulator", strict=False):
            assert cl.zeros(1).__dlpack_device__() == (1, 0)
    assert {name: os.environ.get(name) for name in before} == before
    with pytest.raises(TypeError, match="strict must be"), testing.use_driver("emulator", strict=1):
        pass


def test_faults_are_shared_and_a_program_ends(tmp_path):
    program = f"""
import numpy as np, culaunch as cl
kernel = cl.load({PTX!r})["set"]
x = cl.zeros(1, "uint32")
kernel[1, 1](x)
print(x.numpy()[0])
try:
    kernel[1, 1](8)
except cl.DriverError as error:
    print(error.name)
"""
    environment = {"CULAUNCH_DRIVER": "emulator", "CULAUNCH_EMULATOR_STRICT": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=tmp_path, text=True,
        env={**os.environ, **environment}, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["7", "CUDA_ERROR_ILLEGAL_ADDRESS"]
