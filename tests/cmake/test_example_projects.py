"""The examples that CMake builds, run on the recording driver, and on the emulated one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.needs("cmake", "ninja", "g++")


@pytest.fixture(scope="module")
def launchers(cmake, configure, tmp_path_factory, has):
    build = tmp_path_factory.mktemp("launchers")
    triton = "ON" if has("triton") else "OFF"
    cubin = cl.driver.devices()[0].arch.removeprefix("sm_") if has("gpu") else "80"
    configure(
        EXAMPLES / "launchers",
        build,
        "-DLAUNCHERS_ARCHITECTURES=80;80-virtual",
        f"-DLAUNCHERS_TRITON={triton}",
        f"-DLAUNCHERS_CUBIN_ARCHITECTURE={cubin}",
    )
    cmake("--build", build)
    return build


@pytest.fixture(scope="module")
def kernel_library(cmake, configure, tmp_path_factory):
    tvm_ffi = pytest.importorskip("tvm_ffi")
    build = tmp_path_factory.mktemp("kernel_library")
    configure(
        EXAMPLES / "kernel_library",
        build,
        "-DSCALE_ARCHITECTURES=80;80-virtual",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dtvm_ffi_DIR={tvm_ffi.libinfo.find_cmake_path()}",
    )
    cmake("--build", build)
    return build


def launches(record):
    return [line for line in record if line.startswith("launch")]


def test_embedded(launchers, run_recorded):
    where = "device=0 grid=4,1,1 block=256,1,1 shared=0 stream=default"
    found = launches(run_recorded(launchers / "embedded"))
    assert len(found) == 3
    for line in found:
        assert re.fullmatch(rf"launch add_one {where} args (\w{{16}}) \1 e8030000", line)


def test_the_walk_of_a_first_time_user(launchers, run_recorded, monkeypatch, fake_driver):
    monkeypatch.chdir(launchers)  # where matmul.cubin is
    (found,) = launches(run_recorded(launchers / "driver_walk"))
    assert "launch matmul device=0 grid=16,16,1 block=16,16,1 shared=0" in found
    assert found.endswith(" 00010000")
    source = (EXAMPLES / "driver_walk" / "main.cpp").read_text()
    assert len(source.splitlines()) < 30

    # Elsewhere there is no such file, and that is what it says.
    monkeypatch.chdir("/")
    done = subprocess.run(
        [launchers / "driver_walk"],
        env={**os.environ, "CULAUNCH_DRIVER": str(fake_driver)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "cannot open the image matmul.cubin\n")


@pytest.mark.needs("triton")
def test_triton(launchers, run_recorded):
    (found,) = launches(run_recorded(launchers / "triton"))
    # Its three arguments, and a null pointer for each that Triton added.
    assert re.search(r"block=128,1,1 .* args (\w{16}) \1 e8030000( 0{16})+$", found)


def test_the_library_from_plain_cpp(kernel_library, run_recorded):
    record = run_recorded(kernel_library / "use_scale", kernel_library / "libscale.so")
    (found,) = launches(record)
    assert "launch scale_float32 device=0 grid=4,1,1 block=256,1,1" in found
    assert found.endswith(" 00000040 e803000000000000")
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", kernel_library / "libscale.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # The standard library's templates are visible, and where the compiler links the C++ runtime
    # statically its functions too.
    names = re.findall(r" \w (\w+)$", shown, re.MULTILINE)
    ours = {name for name in names if re.match(r"__tvm_ffi|culaunch|_ZNK?8culaunch", name)}
    # The functions, and what is recorded of them.
    assert ours == {
        f"__tvm_ffi_{kind}{name}" for kind in ("", "_metadata_") for name in ("scale", "scale_into")
    }


def test_an_exported_function_from_a_program_that_was_not_built_for_it(
    kernel_library, run_recorded, tmp_path, monkeypatch
):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    cl.driver.set_driver("emulator")
    image = cl.compile(
        """
extern "C" __global__ void scale_f32(float* y, const float* x, float factor, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}""",
        arch="compute_80",
    )
    kernels = cl.load(image)

    @cl.function
    def scale(x: cl.Array("float32", "n"), factor: float):
        y = cl.empty_like(x)
        n = x.size
        kernels["scale_f32"][cl.ceildiv(n, 128), 128](y, x, factor, n)
        return y

    scale.specialize()
    library = tmp_path / "libscale.so"
    cl.ship.export(scale, library, flags=["-O0"])
    (found,) = launches(run_recorded(kernel_library / "use_scale", library))
    assert "launch scale_f32 device=0 grid=8,1,1 block=128,1,1" in found
    assert found.endswith(" 00000040 e803000000000000")
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    names = re.findall(r" \w (\w+)$", shown, re.MULTILINE)
    ours = {name for name in names if re.match(r"__tvm_ffi|culaunch|_ZNK?8culaunch", name)}
    assert {name for name in ours if "__tvm_ffi__" not in name} == {
        "__tvm_ffi_scale",
        "__tvm_ffi_scale_into",
    }
    needed = subprocess.run(
        ["readelf", "-d", library], capture_output=True, text=True, check=True
    ).stdout
    assert not re.search(r"NEEDED.*(python|culaunch|libcuda|cudart)", needed)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("embedded", "0 + 1 + 1 + 1 = 3\n"),
        ("driver_walk", "c[0] = 512\n"),
        pytest.param("triton", "3 * 3 = 9\n", marks=pytest.mark.needs("triton")),
    ],
)
def test_launchers_on_a_gpu(launchers, program, said):
    done = subprocess.run(
        [launchers / program], cwd=launchers, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


@pytest.mark.gpu
def test_the_library_from_plain_cpp_on_a_gpu(kernel_library):
    command = [kernel_library / "use_scale", kernel_library / "libscale.so"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "21 * 2 = 42\n", "")


@pytest.fixture
def run_python(run_after_torch):
    def run(script, library, **environment):
        words = ["-W", "error", EXAMPLES / "kernel_library" / script, library]
        done = run_after_torch(words, env={**os.environ, **environment})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.needs("numpy")
def test_the_library_from_python(kernel_library, run_python, has):
    environment = {} if has("gpu") else {"CULAUNCH_DRIVER": "emulator"}
    said = run_python("use_scale.py", kernel_library / "libscale.so", **environment)
    if not has("gpu"):
        assert "NumPy: 999 * 2.5 = 2497.5\n" in said
    if has("torch"):
        assert "PyTorch, torch.bfloat16: 1000 * 2.5 = 2496\n" in said
        assert "an error: x must be contiguous (got shape (100, 10), strides (1, 100))" in said


@pytest.mark.needs("jax", "jax_tvm_ffi")
def test_the_library_from_jax(kernel_library, run_python, has):
    environment = {} if has("gpu") else {"CULAUNCH_DRIVER": "emulator"}
    said = run_python("use_scale_jax.py", kernel_library / "libscale.so", **environment)
    assert said == "JAX: 999 * 2.5 = 2497.5\n"
