"""A libcuda.so.1 for C in tests: to that C it is the driver in use, and to nobody else."""

import os
import subprocess
import sys

import pytest

from culaunch import testing

PROGRAM = """
import ctypes, sys
import culaunch as cl

driver, n = ctypes.CDLL(sys.argv[1]), ctypes.c_int(-1)
print(driver.cuInit(0), driver.cuDeviceGetCount(ctypes.byref(n)), n.value > 0)
print(cl.compile("__global__ void k() {}", arch="sm_90").format)
"""


def run(tmp_path, how, driver):
    path = testing.c_driver(tmp_path / "driver")
    environment = {**os.environ, "CULAUNCH_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("CULAUNCH_DRIVER", None)
    if driver is not None:
        environment["CULAUNCH_DRIVER"] = driver
    if how == "by name":
        environment["LD_LIBRARY_PATH"], path = os.path.split(path)
    words = [sys.executable, "-c", PROGRAM, path]
    done = subprocess.run(words, env=environment, text=True, capture_output=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.splitlines()


@pytest.mark.needs("g++", "nvidia.cu13", "nvrtc")
@pytest.mark.parametrize("how", ["by path", "by name"])
def test_nvrtc_compiles_beside_it(tmp_path, how):
    """NVRTC asks the process's libcuda.so.1 for what only NVIDIA's has, and crashed."""
    assert run(tmp_path, how, "emulator") == ["0 0 True", "fatbin"]


@pytest.mark.gpu
@pytest.mark.needs("g++", "nvrtc")
def test_it_finds_the_driver_of_the_system(tmp_path):
    """Loaded before libcuda.so.1 is, it was what culaunch then found under that name."""
    assert run(tmp_path, "by path", None) == ["0 0 True", "cubin"]


@pytest.mark.needs("g++", "nvidia.cu13")
def test_what_is_linked_with_it_asks_for_it_alone(tmp_path):
    """Found by an rpath, and under no name that another library asks for."""
    driver = testing.c_driver(tmp_path / "driver")
    source, program = tmp_path / "main.c", tmp_path / "main"
    source.write_text("int cuInit(unsigned); int main(void) { return cuInit(0); }\n")
    subprocess.run(
        ["gcc", source, driver, f"-Wl,-rpath,{tmp_path / 'driver'}", "-o", program], check=True
    )
    needed = subprocess.run(["ldd", program], text=True, capture_output=True, check=True).stdout
    assert "libcuda.so.1" not in needed
    assert "libculaunch_c_driver.so" in needed
    assert "not found" not in needed
    environment = {**os.environ, "CULAUNCH_DRIVER": str(tmp_path / "none.so")}
    # CUDA_ERROR_NOT_INITIALIZED
    assert subprocess.run([program], env=environment, check=False).returncode == 3
