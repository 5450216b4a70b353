"""Name expressions in CMake: templates are instantiated, and found by the same names everywhere."""

from __future__ import annotations

import os
import subprocess

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("cmake", "g++", "ninja")
PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(named LANGUAGES CXX)
find_package(culaunch REQUIRED)
add_executable(named main.cpp)
culaunch_add_kernels(named NAME kernels SOURCES scale.cu ARCHITECTURES 80 90-virtual
                     NAMES "scale<float>" "scale<int, 4>")
"""
KERNELS = """
template <class T, int n = 1>
__global__ void scale(T* x, T factor) { x[threadIdx.x * n] *= factor; }
"""
PROGRAM = """
#include <culaunch/culaunch.h>
CULAUNCH_EMBED_CUBIN(kernels);
int main() {
  CULAUNCH_GET_KERNEL(kernels, "scale<float>")({1, 32}, static_cast<float*>(nullptr), 2.0f);
  CULAUNCH_GET_MODULE(kernels)["scale<int, 4>"]({1, 32}, static_cast<int*>(nullptr), 3);
}
"""

both_compilers = pytest.mark.parametrize(
    "compiler",
    [
        pytest.param("nvcc", marks=pytest.mark.needs("nvcc")),
        pytest.param("NVRTC", marks=pytest.mark.needs("nvrtc")),
    ],
)


@both_compilers
def test_names_are_found_alike(cmake, configure, run_recorded, tmp_path, compiler):
    for name, text in (("CMakeLists.txt", PROJECT), ("scale.cu", KERNELS), ("main.cpp", PROGRAM)):
        (tmp_path / name).write_text(text)
    build = tmp_path / "build"
    configure(tmp_path, build, *(["-DCULAUNCH_NVCC=OFF"] if compiler == "NVRTC" else []))
    assert f"with {compiler}" in cmake("--build", build)
    launched = [line.split()[1] for line in run_recorded(build / "named") if "launch " in line]
    names = {
        "scale<float>": "_Z5scaleIfLi1EEvPT_S0_",
        "scale<int, 4>": "_Z5scaleIiLi4EEvPT_S0_",
    }
    assert launched == list(names.values())
    image = cl.Image.open(build / "culaunch" / "named" / "kernels.fatbin")
    assert dict(image.names) == names
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.replace("scale<float>", "none<float>"))
    assert "none" in cmake("--build", build, fails=True)


TYPED_PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(typed LANGUAGES CXX)
find_package(culaunch REQUIRED)
add_executable(typed main.cpp)
culaunch_add_kernels(typed NAME kernels SOURCES add.cu scale.cu ARCHITECTURES 80)
"""
ADD = """
typedef float real;
extern "C" __global__ void add(real* y, const real* x, int n) { y[threadIdx.x] += x[n]; }
"""
SCALE = """
extern "C" __global__ void scale(double* x, double by) { x[threadIdx.x] *= by; }
"""
TYPED_PROGRAM = """
#include <cstdio>
#include <culaunch/culaunch.h>
CULAUNCH_EMBED_CUBIN(kernels);
int main() {
  float* y = nullptr;
  CULAUNCH_GET_KERNEL(kernels, "add")({1, 32}, y, y, 3);
  try {
    CULAUNCH_GET_KERNEL(kernels, "scale")({1, 32}, y, 2.0);
  } catch (const culaunch::Error& error) {
    std::puts(error.what());
    return error.kind() == culaunch::ErrorKind::kType ? 3 : 1;
  }
}
"""


@both_compilers
def test_types_of_parameters_are_recorded(cmake, configure, fake_driver, tmp_path, compiler):
    files = {
        "CMakeLists.txt": TYPED_PROJECT, "main.cpp": TYPED_PROGRAM, "add.cu": ADD,
        "scale.cu": SCALE,
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    build = tmp_path / "build"
    configure(tmp_path, build, *(["-DCULAUNCH_NVCC=OFF"] if compiler == "NVRTC" else []))
    assert f"with {compiler}" in cmake("--build", build)
    image = cl.Image.open(build / "culaunch" / "typed" / "kernels.fatbin")
    signatures = {"add": ("float*", "const float*", "int"), "scale": ("double*", "double")}
    assert dict(image.signatures) == signatures
    # Python and the command line read them from the program itself.
    (inspected,) = cl.inspect(build / "typed").images
    assert {
        kernel.name: tuple(one.type for one in kernel.parameters) for kernel in inspected.kernels
    } == signatures
    done = subprocess.run(
        [build / "typed"],
        env={**os.environ, "CULAUNCH_DRIVER": str(fake_driver)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "argument 0 of scale, double*" in done.stdout
