"""Name expressions in CMake: templates are instantiated, and found by the same names everywhere."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    "compiler",
    [
        pytest.param("nvcc", marks=pytest.mark.needs("nvcc")),
        pytest.param("NVRTC", marks=pytest.mark.needs("cuda.bindings")),
    ],
)
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
