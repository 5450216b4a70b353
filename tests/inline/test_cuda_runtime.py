"""C++ that calls the CUDA runtime, as TVM-FFI's own launcher does: it is linked without options."""

from __future__ import annotations

import subprocess

import pytest

import culaunch as cl
from culaunch._inline import toolchain

np = pytest.importorskip("numpy")
pytest.importorskip("tvm_ffi")
pytestmark = [pytest.mark.needs("g++"), pytest.mark.slow]

# As TVM-FFI documents it, with nothing of culaunch.
CODE = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/cuda/cubin_launcher.h>

TVM_FFI_EMBED_CUBIN(kernels);

void add_one(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
  static auto kernel = TVM_FFI_EMBED_CUBIN_GET_KERNEL(kernels, "add_one");
  int64_t n = x.size(0);
  void* from = x.data_ptr();
  void* to = y.data_ptr();
  void* args[] = {&from, &to, &n};
  DLDevice device = x.device();
  auto stream = static_cast<cudaStream_t>(
      TVMFFIEnvGetStream(device.device_type, device.device_id));
  tvm::ffi::dim3 grid((n + 255) / 256), block(256);
  TVM_FFI_CHECK_CUBIN_LAUNCHER_CUDA_ERROR(kernel.Launch(args, grid, block, stream));
}

bool runtime_is_the_headers() {
  int version = 0;
  return cudaRuntimeGetVersion(&version) == cudaSuccess && version == CUDART_VERSION;
}
"""
KERNEL = """
extern "C" __global__ void add_one(const float* x, float* y, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}
"""


def load(image, **options):
    return cl.cpp.load_inline(
        "tvm_launcher",
        CODE,
        functions=["add_one", "runtime_is_the_headers"],
        embed_cubin={"kernels": image},
        flags=["-O0"],
        **options,
    )


def test_sources_of_tvm_ffis_launcher_build_unchanged(libraries, stand_in_cubin):
    module = load(stand_in_cubin(), build_directory=libraries)
    assert module.runtime_is_the_headers()


def test_a_library_without_runtime_calls_holds_nothing_of_it(tmp_path, libraries):
    path = cl.cpp.build_inline(
        "alone", "int f() { return 1; }", functions="f", flags=["-O0"],
        output=tmp_path / "alone.so", build_directory=libraries,
    )  # fmt: skip
    said = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    assert "cudaLibrary" not in said
    assert "cudart" not in said


def test_a_missing_runtime_is_named(libraries, stand_in_cubin, monkeypatch):
    monkeypatch.setattr(toolchain, "cudart_flags", lambda root: ())
    with pytest.raises(cl.CompileError, match=r"calls cuda\w+ of the CUDA runtime.*pip install"):
        load(stand_in_cubin(), build_directory=libraries)


@pytest.mark.gpu
def test_sources_of_tvm_ffis_launcher_launch(libraries):
    torch = pytest.importorskip("torch")
    x = torch.arange(1000.0, device="cuda")
    y = torch.empty_like(x)
    load(cl.compile(KERNEL), build_directory=libraries).add_one(x, y)
    assert torch.equal(y, x + 1)
