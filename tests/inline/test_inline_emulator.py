"""Inline C++ on the emulated driver, whatever GPU there is: numbers, and arrays of every shape."""

from __future__ import annotations

import os

import pytest

import culaunch as cl

np = pytest.importorskip("numpy")
pytest.importorskip("tvm_ffi")
pytestmark = [pytest.mark.needs("g++", "nvrtc"), pytest.mark.slow]

KERNELS = """
extern "C" __global__ void add(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + a;
}
"""
CODE = """
using culaunch::ffi::Data;
using tvm::ffi::TensorView;
CULAUNCH_EMBED_CUBIN(kernels);

static void Launch(void* y, void* x, double a, int64_t n) {
  CULAUNCH_GET_KERNEL(kernels, "add")
  ({(static_cast<unsigned>(n) + 63) / 64, 64}, y, x, static_cast<float>(a), static_cast<int>(n));
}
// Two launches with pointers that were taken once.
void add_twice(TensorView y, TensorView x, double a) {
  void* to = Data(y);
  void* from = Data(x);
  Launch(to, from, a, x.numel());
  Launch(to, to, a, x.numel());
}
tvm::ffi::Tensor add_new(TensorView x, double a) {
  tvm::ffi::Tensor y = culaunch::ffi::EmptyLike(x);
  Launch(Data(y), Data(x), a, x.numel());
  return y;
}
tvm::ffi::Tensor like(TensorView x) { return culaunch::ffi::EmptyLike(x); }
tvm::ffi::Tensor float8_like(TensorView x) {
  return culaunch::ffi::Empty(x.shape(), DLDataType{kDLFloat8_e4m3fn, 8, 1}, x.device());
}
tvm::ffi::Tensor elsewhere(TensorView x) {
  return culaunch::ffi::Empty(x.shape(), x.dtype(), DLDevice{kDLCUDA, 0});
}
// What docs/coming_from/torch.md has.
tvm::ffi::Tensor added(TensorView x, double a) {
  tvm::ffi::Tensor y = culaunch::ffi::EmptyLike(x);
  const int n = static_cast<int>(x.numel());
  CULAUNCH_GET_KERNEL(kernels, "add")
  ({(n + 63u) / 64, 64, 0, culaunch::ffi::CurrentStream(x)}, Data(y), Data(x),
   static_cast<float>(a), n);
  return y;
}
void add_some(TensorView y, TensorView x, int64_t n) {
  const DLTensor given = {x.data_ptr(),
                          x.device(),
                          x.ndim(),
                          x.dtype(),
                          const_cast<int64_t*>(x.shape().data()),
                          const_cast<int64_t*>(x.strides().data()),
                          x.byte_offset()};
  CULAUNCH_GET_KERNEL(kernels, "add")
  ({1, 64, 0, culaunch::ffi::CurrentStream(x)}, Data(y, n), culaunch::ArrayOf(given, n), 1.0f,
   static_cast<int>(n));
}
void add_past_the_end(TensorView x) { Launch(Data(x), Data(x), 1, x.numel() + 1); }
"""


@pytest.fixture(scope="module")
def module(libraries):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULAUNCH_DRIVER_TABLE", "")
        patch.setenv("CULAUNCH_DRIVER", "emulator")
        yield cl.cpp.load_inline(
            "emulated",
            CODE,
            functions=[
                "add_twice",
                "add_new",
                "like",
                "float8_like",
                "elsewhere",
                "add_past_the_end",
                "added",
                "add_some",
            ],
            embed_cubin={"kernels": cl.compile(KERNELS)},
            flags=["-O0"],
            build_directory=libraries,
        )


def test_one_look_at_a_tensor_serves_all_launches_of_a_call(module):
    x = np.arange(100, dtype=np.float32)
    y = np.zeros_like(x)
    module.add_twice(y, x, 1.5)
    assert np.array_equal(y, x + 3)


def test_an_array_may_begin_anywhere(module):
    x = np.arange(100, dtype=np.float32)
    module.add_twice(x[50:], x[:50], 1.0)
    assert np.array_equal(x, [*range(50), *range(2, 52)])


def test_a_new_tensor_is_of_the_callers_framework(module):
    torch = pytest.importorskip("torch")
    x = torch.arange(100, dtype=torch.float32)
    y = module.add_new(x[10:20], 0.5)
    assert isinstance(y, torch.Tensor)
    assert torch.equal(y, x[10:20] + 0.5)
    with pytest.raises(RuntimeError, match="a framework that offers no allocator"):
        module.add_new(np.zeros(3, np.float32), 0.5)


def test_arrays_of_another_type_are_the_error_that_python_gives(module):
    torch = pytest.importorskip("torch")
    kernel = cl.load(cl.compile(KERNELS))["add"]
    for dtype in (torch.float64, torch.int64, torch.float16, torch.int32, torch.bool):
        x = torch.ones(6, dtype=dtype)
        with pytest.raises(TypeError, match="must be an array of float32") as python:
            kernel[1, 64](torch.empty_like(x), x, 1.0, 6)
        start, _, end = str(python.value).partition("(got torch.Tensor of ")
        for _ in range(2):  # by the first call, and by one whose C++ types are known to fit
            with pytest.raises(TypeError, match="must be an array of float32") as native:
                module.added(x, 1.0)
            assert str(native.value) == f"{start}(got an array of {end}"
    assert torch.equal(module.added(torch.ones(6), 1.0), torch.full((6,), 2.0))
    mixed = np.ones(6), np.ones(6, np.float32)
    for y, x in (mixed, mixed[::-1]):
        index = 0 if y.dtype == np.float64 else 1
        with pytest.raises(TypeError, match=f"^argument {index} of add, .*, must be an array"):
            module.add_some(y, x, 6)


def test_an_array_that_is_too_short_for_what_is_asked_of_it(module):
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    module.add_some(y[:4], x[:8:2], 4)
    assert y.tolist() == [2.0] * 4 + [0.0] * 60
    with pytest.raises(ValueError, match=r"must have at least 5 elements \(got an array of 4\)"):
        module.add_some(y[:4], x[:8], 5)
    with pytest.raises(ValueError, match="argument 1 of add, const float"):
        module.add_some(y, x[:4], 5)


def test_culaunchs_own_arrays(module):
    x, y = cl.to_device(np.arange(100, dtype=np.float32)), cl.empty(100, np.float32)
    module.add_twice(y, x, 1.5)
    assert np.array_equal(y.numpy(), np.arange(100) + 3)


def test_culaunchs_own_arrays_are_allocated_by_libraries(module):
    # Those of nobody else: PyTorch is not asked, and a NumPy array cannot be.
    x = cl.to_device(np.arange(100, dtype=np.float32))
    made = [module.add_new(x, float(step)) for step in range(3)]
    assert {type(y) for y in made} == {cl.DeviceArray}
    del x
    for step, y in enumerate(made):
        assert (y.shape, y.dtype, y.device, y.nbytes) == ((100,), np.float32, 0, 400)
        assert np.array_equal(y.numpy(), np.arange(100) + step)
        assert np.array_equal(np.from_dlpack(y), np.arange(100) + step)
    again = module.add_new(made[1], 1.0)
    del made
    assert np.array_equal(again.numpy(), np.arange(100) + 2)


@pytest.mark.parametrize("shape", [(0,), (), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "u8", "c8", "?"])
def test_outputs_keep_shape_and_type(module, shape, dtype):
    y = module.like(cl.empty(shape, dtype))
    assert (type(y), y.shape, y.dtype) == (cl.DeviceArray, shape, np.dtype(dtype))


def test_an_output_that_culaunch_has_no_array_for(module):
    with pytest.raises(ValueError, match=r"no arrays of DLPack type \(10, 8 bits, 1 lanes\)"):
        module.float8_like(cl.empty(3, "f4"))
    with pytest.raises(ValueError, match=r"device type 1 with the driver in use \(got 2\)"):
        module.elsewhere(cl.empty(3, "f4"))


def test_inspect_reads_the_library(module, libraries):
    (library,) = libraries.glob("*/emulated-*.so")
    (image,) = cl.inspect(library).images
    assert (image.format, [kernel.name for kernel in image.kernels]) == ("ptx", ["add"])
    assert [param.type for param in image.kernels[0].parameters][2:] == ["float", "int"]


def test_a_read_past_the_end_is_found(module, libraries, run_after_torch, tmp_path):
    # In a process of its own: the error stays with the emulated device, as with a real one.
    (tmp_path / "program.py").write_text(
        "import sys, numpy as np, tvm_ffi, culaunch as cl\n"
        "cl.driver.driver_name()\n"
        "module = tvm_ffi.load_module(sys.argv[1])\n"
        "try: module.add_past_the_end(np.zeros(100, np.float32))\n"
        "except RuntimeError as error: print(error)\n"
    )
    (library,) = libraries.glob("*/emulated-*.so")
    environment = {**os.environ, "CULAUNCH_DRIVER": "emulator"}
    done = run_after_torch([tmp_path / "program.py", library], env=environment)
    assert done.returncode == 0, done.stderr
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout
    assert "4-byte read of global address" in done.stdout


def test_a_library_starts_the_chosen_emulator_itself(module, libraries, run_after_torch):
    (library,) = libraries.glob("*/emulated-*.so")
    script = """
import sys, numpy as np, tvm_ffi
module = tvm_ffi.load_module(sys.argv[1])
x = np.arange(100, dtype=np.float32)
y = np.zeros_like(x)
module.add_twice(y, x, 1.5)
assert np.array_equal(y, x + 3)
assert "culaunch" in sys.modules
assert not hasattr(sys.modules["__main__"], "culaunch")
"""
    environment = {**os.environ, "CULAUNCH_DRIVER": "emulator"}
    environment.pop("CULAUNCH_DRIVER_TABLE", None)
    done = run_after_torch(["-c", script, library], env=environment)
    assert done.returncode == 0, done.stderr
