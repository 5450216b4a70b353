"""``preload`` and the report: what was loaded when, and that a call then loads nothing."""

import numpy as np
import pytest

import culaunch as cl

x = np.arange(5, dtype=np.float32)


@pytest.fixture
def lib(scale, emulated, tmp_path):
    scale.specialize()
    cl.ship.save([scale], tmp_path / "mylib.culib")
    return cl.ship.load_library(tmp_path / "mylib.culib")


def newest():
    """Return the last image that was loaded; the report keeps so many, not all."""
    return next(iter(reversed(list(cl.profile.load_report()))), None)


def since(image):
    """Return what was loaded after an image."""
    images = list(cl.profile.load_report())
    return images[images.index(image) + 1 :] if image is not None else images


def test_a_library_is_loaded_before_its_first_call(lib):
    before = newest()
    report = cl.ship.preload(lib)
    assert len(report) >= 1
    assert all(one.is_preloaded for one in report)
    assert report.size == sum(one.size for one in report) > 0
    assert all(one.source.startswith(f"{lib.source}:") for one in report)
    assert since(before) == list(report)
    assert lib.scale(x, 2.0).tolist() == (2 * x).tolist()
    assert since(before) == list(report), "the call loads nothing"
    assert len(cl.ship.preload(lib.scale, devices=[0])) == 0, "nothing is loaded twice"


def test_without_it_the_first_call_loads(lib):
    before = newest()
    lib.scale(x, 2.0)
    (new,) = since(before)
    assert not new.is_preloaded
    lib.scale(x, 3.0)
    assert since(before) == [new]


def test_the_report_is_text_and_data(lib):
    report = cl.ship.preload(lib)
    lines = str(report).splitlines()
    assert len(report) == 1
    assert lines[0].startswith("1 image, ")
    assert "preloaded" in lines[1]
    assert lib.source in lines[1]
    assert report.to_dict()["images"][0]["format"] == "ptx"
    assert report.seconds >= 0


def test_modules_and_kernels(emulated, image):
    module = cl.load(image)
    assert len(cl.ship.preload(module, module["fill"], devices=0)) == 0, "load() did that"
    assert not list(cl.profile.load_report())[-1].is_preloaded


def test_mistakes(emulated, lib):
    for wrong in (3, "x.culib", None, lib.source):
        with pytest.raises(TypeError, match=r"preload\(\) accepts libraries"):
            cl.ship.preload(wrong)
    for wrong in ("0", [None, "x"], object()):
        with pytest.raises(TypeError, match="device must be an int"):
            cl.ship.preload(lib, devices=wrong)
    with pytest.raises(ValueError, match="there is no device 77"):
        cl.ship.preload(lib, devices=77)


@pytest.mark.slow
@pytest.mark.needs("triton", "torch")
def test_a_set_loads_what_the_device_runs(emulated, tmp_path):
    import culaunch.triton as ct
    from culaunch.testing import use_driver

    kernels = make_set()
    kernels.save(tmp_path / "set.culib")
    with use_driver("emulator"):
        loaded = ct.KernelSet.load(tmp_path / "set.culib")
        report = cl.ship.preload(loaded)
        # Of two architectures the nearest, for each of two configurations; the emulator takes PTX.
        assert [one.format for one in report] == ["ptx", "ptx"]
        before = newest()
        import torch

        y, ones = torch.zeros(64), torch.ones(64)
        loaded[(1,)](y, ones, 64, BLOCK=64)
        assert y.tolist() == [2.0] * 64
        assert since(before) == []


def make_set():
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[1] / "farm"))
    import farmed_kernels

    import culaunch.triton as ct

    return ct.compile(
        farmed_kernels.double, "*fp32:16, *fp32:16, i32:16", arch=["sm_80", "compute_80"],
        configs=[{"BLOCK": 64}, {"BLOCK": 128}], keep_ptx=True,
    )  # fmt: skip


@pytest.fixture
def gpu():
    from culaunch.testing import use_driver

    with use_driver("cuda"):  # tests above chose the emulator
        yield


@pytest.mark.gpu
@pytest.mark.needs("nvrtc")
def test_on_a_gpu_images_are_taken_from_the_file(gpu, tmp_path):
    source = """extern "C" __global__ void scale(float* y, const float* x, float a, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = a * x[i];
    }"""
    kernel = cl.load(cl.compile(source))["scale"]

    @cl.function
    def scale(x: cl.Array("float32", "n"), factor: float):
        y = cl.empty_like(x)
        kernel[cl.ceildiv(x.size, 256), 256](y, x, factor, x.size)
        return y

    scale.specialize()
    cl.ship.save([scale], tmp_path / "mylib.culib")
    lib = cl.ship.load_library(tmp_path / "mylib.culib")
    (one,) = cl.ship.preload(lib, devices=range(cl.driver.device_count()))
    assert (one.format, one.is_mapped, one.is_preloaded) == ("cubin", True, True)
    for device in range(cl.driver.device_count()):
        y = lib.scale(cl.to_device(x, device=device), 2.0)
        assert cl.DeviceArray.numpy(y).tolist() == (2 * x).tolist()
    assert list(cl.profile.load_report())[-1] == one
