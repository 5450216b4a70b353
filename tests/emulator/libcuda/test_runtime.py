"""Programs of CUDA's runtime, on the emulator as libcudart.so.13."""

import shutil
import subprocess

import pytest
from declarations import Declarations

NVCC = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


@pytest.fixture(scope="module")
def runtime(library):
    return library.with_name("libcudart.so.13")


@pytest.fixture(scope="module")
def declarations(include):
    return Declarations(include, "cuda_runtime_api.h")


def of_nvcc(test):
    """Mark a test of a program that nvcc compiles."""
    for mark in (pytest.mark.slow, pytest.mark.needs("click", "nvcc"), NVCC):
        test = mark(test)
    return test


@pytest.mark.needs("click", "gcc")
def test_a_program_without_nvcc(compiled, emulate, runtime):
    done = emulate(compiled("runtime.c", library=runtime))
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


@of_nvcc
@pytest.mark.parametrize("options", [(), ("-rdc=true",)], ids=["whole", "relocatable"])
def test_a_program_of_nvcc(compiled, emulate, options):
    done = emulate(compiled("kernels.cu", *options))
    assert done.stdout.splitlines() == [
        "culaunch emulator (sm_80), 8.0",
        "table[2] is 3",
        "3 297 105",
        "2.5",
        "32 x 1024",
        "64 clusters of 1",
        "cudaPeekAtLastError(): cudaErrorInvalidConfiguration",
        "cudaGetLastError(): cudaErrorInvalidConfiguration",
        "cudaIpcGetMemHandle(&shared, x): cudaErrorNotSupported",
        "cudaDeviceSynchronize(): cudaErrorIllegalAddress",
    ]
    assert done.stderr.count("outside every allocation") == 1
    missing = "culaunch: cudaIpcGetMemHandle is not emulated: it returns cudaErrorNotSupported\n"
    assert done.stderr.count(missing) == 1


PROGRAMS = {
    "textures.cu": (
        ("-Wno-deprecated-declarations",),
        ["32 bits, 4 x 3 x 0, 2", "plane: 0 1 2 3 4 5 6 7 8 9 10 11", "twice: 2 8 22",
         "layer: 12 13 14 15 16 17 18 19 20 21 22 23", "faces: 1.5 5.5 9.5 13.5 17.5 21.5",
         "normalized: 0 0.2 0.4 1 1 0 0 0.2", "line: 1 2 3 4 5 6 7 -8", "levels: 1 2 2"],
    ),
    "children.cu": (
        ("-rdc=true", "-lcudadevrt"),
        ["cudaSuccess", "tail: 15 46 70", "cudaSuccess", "copy: 16 17 -1 -1 77"],
    ),
    "graphs.cu": (
        (),
        ["20 22 27, 24 27, 1", "110 117", "200 207", "7 nodes, the last of type 3", "201 208",
         "cudaErrorInvalidResourceHandle"],
    ),
}  # fmt: skip


@of_nvcc
@pytest.mark.parametrize("source", PROGRAMS)
def test_what_a_program_of_nvcc_says(compiled, emulate, source):
    options, lines = PROGRAMS[source]
    done = emulate(compiled(source, *options))
    assert (done.stdout.splitlines(), done.stderr) == (lines, "")


MAIN = """
#include <cstdio>
extern __device__ int add_base(int);
extern __device__ int base;
template <class T> __device__ __noinline__ T twice(T x) { return 2 * x; }
__global__ void run(int* p) { *p = add_base(3) + base + twice(4); }
__global__ void run_other(int* p);
__global__ void launch_other(int* p) { run_other<<<1, 1>>>(p); }
int other();
int main() {
  int *p, *q;
  cudaMallocManaged(&p, 4);
  cudaMallocManaged(&q, 4);
  run<<<1, 1>>>(p);
  launch_other<<<1, 1>>>(q);
  cudaDeviceSynchronize();
  std::printf("%d %d %d\\n", *p, other(), *q);
}
"""
OTHER = """
__device__ int base = 100;
template <class T> __device__ __noinline__ T twice(T x) { return 2 * x; }
__device__ int add_base(int x) { return twice(x) + base; }
__global__ void run_other(int* p) { *p = twice(5); }
int other() {
  int* p;
  cudaMallocManaged(&p, 4);
  run_other<<<1, 1>>>(p);
  cudaDeviceSynchronize();
  return *p;
}
"""


@of_nvcc
def test_files_with_functions_and_kernels_of_each_other(emulate, tmp_path):
    files = [tmp_path / "main.cu", tmp_path / "other.cu"]
    for file, text in zip(files, (MAIN, OTHER), strict=True):
        file.write_text(text)
    program = tmp_path / "program"
    options = ("-gencode=arch=compute_80,code=compute_80", "-Wno-deprecated-gpu-targets")
    options = (*options, "-cudart=shared", "-rdc=true", "-lcudadevrt")
    command = ["nvcc", *options, *files, "-o", program]
    subprocess.run([*map(str, command)], check=True, timeout=300)
    done = emulate(program)
    assert (done.stdout, done.stderr) == ("214 10 10\n", "")


def test_every_declared_function_is_exported(declarations, exported, runtime):
    assert len(declarations.forms) > 300
    assert exported(runtime, declarations.forms) == set(declarations.forms)
