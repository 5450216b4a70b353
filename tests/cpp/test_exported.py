"""Exported functions in programs that know nothing of culaunch: by the header, and from Rust."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import culaunch as cl
from culaunch import elementwise as ew
from culaunch.testing import use_driver

tvm_ffi = pytest.importorskip("tvm_ffi")
libinfo = pytest.importorskip("tvm_ffi.libinfo")
HERE = Path(__file__).parent

KERNELS = """
template <class T> __global__ void scale(T* y, const T* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)((float)x[i] * a);
}
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A library and its header."""
    folder = tmp_path_factory.mktemp("exported")
    with use_driver("emulator"):
        names = ["scale<float>", "scale<double>"]
        kernels = cl.load(cl.compile(KERNELS, arch="compute_80", names=names))

        @cl.function
        def scale(x: cl.Array("float32 | float64", "n"), factor: float = 2.0):
            """Return x * factor: \\"""
            cl.check(x.is_contiguous(), "x must be contiguous")
            y = cl.empty_like(x)
            kernels[f"scale<{x.dtype}>"][cl.ceildiv(x.shape[0], 64), 64](y, x, factor, x.shape[0])
            return y

        @cl.function
        def fill(y, double: float, *, mode: str = "once", when=None):
            kernels["scale<float>"][1, 64](y, y, double if mode == "once" else 2 * double, y.size)

        @cl.function
        def double(n: int, is_odd: bool = False):
            return 2 * n + 1 if is_odd else 2 * n

        @cl.function
        def parts(xs, wanted: cl.DType):
            total = sum(x.shape[0] for x in xs)
            return cl.zeros((total,), wanted), {"total": total}, [1, 2.5], total / 2

        @cl.function
        def either(n):
            return n if n > 0 else None

        scale.specialize()
        fill.specialize(y=cl.Array("float32", "n"), double=float)
        fill.specialize(y=cl.Array("float32", "n"), double=float, mode="twice", when=int)
        double.specialize(n=int)
        double.specialize(n=int, is_odd=True)
        parts([np.zeros(2, np.float32)] * 2, cl.DType) if False else None
        parts([np.zeros(2, np.float32), np.zeros(3, np.float32)], np.dtype("int32"))
        either(1)
        either(0)
        either(1.5)
        functions = [scale, fill, double, parts, either]
        cl.ship.export(functions, folder / "libmylib.so", header=folder / "mylib.h", flags=["-O0"])
    return folder


def test_the_header_has_types(exported):
    text = (exported / "mylib.h").read_text()
    for line in (
        "// Return x * factor:",
        "//     x: float32[_], factor: float",
        "inline Tensor scale(const TensorView& x, double factor = 2.0) {",
        "inline void scale_into(const TensorView& out, const TensorView& x, double factor = ",
        "inline void fill(const TensorView& y, double double_2, ",
        ', const ::tvm::ffi::String& mode = "once", const AnyView& when = AnyView()) {',
        "inline int64_t double_2(int64_t n, bool is_odd = false) {",
        "inline ::tvm::ffi::Tuple<Tensor, ::tvm::ffi::Map<::tvm::ffi::String, Any>, ",
        "::tvm::ffi::Array<Any>, double> parts(const ::tvm::ffi::Array<Tensor>& xs, ",
        ", DLDataType wanted) {",
        "inline Any either(const AnyView& n) {",
        "namespace mylib {",
    ):
        assert line in text, line
    assert "culaunch/" not in text
    assert not any(line.rstrip().endswith("\\") for line in text.splitlines())


PROGRAM = """
#include "mylib.h"

#include <cstdio>

int main() {
  alignas(64) float x[100] = {}, y[100] = {};
  int64_t shape[] = {100}, strides[] = {2}, half[] = {50};
  DLTensor from = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  DLTensor to = {y, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  mylib::scale_into(&to, &from, 2.5);
  mylib::scale_into(&to, &from);
  mylib::fill(&to, 3);
  mylib::fill(&to, 3, "twice", 1);
  const mylib::Tensor made = mylib::scale(&from, 2);
  std::printf("%d %d\\n", static_cast<int>(made.size(0)), made.dtype().bits);
  std::printf("%d %d\\n", static_cast<int>(mylib::double_2(4)),
              static_cast<int>(mylib::double_2(4, true)));
  const auto [zeros, numbers, list, mean] = mylib::parts({made, made}, {kDLInt, 32, 1});
  std::printf("%d %d %d %g\\n", static_cast<int>(zeros.size(0)),
              static_cast<int>(numbers["total"].cast<int64_t>()), static_cast<int>(list.size()),
              mean);
  std::printf("%d %d\\n", static_cast<int>(mylib::either(7).cast<int64_t>()),
              mylib::either(0) == nullptr);
  DLTensor jumps = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, half, strides, 0};
  DLTensor wrong = {x, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, shape, nullptr, 0};
  for (DLTensor* one : {&jumps, &wrong}) {
    try {
      mylib::scale(one);
    } catch (const tvm::ffi::Error& error) {
      std::printf("%s: %s\\n", error.kind().c_str(), error.message().c_str());
    }
  }
}
"""


def environment(fake_driver, log):
    return {
        **os.environ,
        "CULAUNCH_DRIVER": str(fake_driver),
        "FAKE_DRIVER_LOG_FILE": str(log),
        "LD_LIBRARY_PATH": str(Path(libinfo.find_libtvm_ffi()).parent),
    }


def run(command, **options):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compiler(gxx, folder, source, name, program):
    """Return the command for a program with an exported library."""
    # Neither a header of culaunch's nor one of CUDA's is there.
    return [gxx, "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{folder}",
            "-isystem", libinfo.find_include_path(), "-isystem", libinfo.find_dlpack_include_path(),
            source, folder / f"lib{name}.so", libinfo.find_libtvm_ffi(),
            f"-Wl,-rpath,{folder}", "-o", program]  # fmt: skip


def test_a_program_that_was_not_built_here(exported, fake_driver, gxx, tmp_path):
    (tmp_path / "main.cpp").write_text(PROGRAM)
    run(compiler(gxx, exported, tmp_path / "main.cpp", "mylib", tmp_path / "main"))
    log = tmp_path / "log"
    out = run([tmp_path / "main"], env=environment(fake_driver, log)).splitlines()
    assert out[:4] == ["100 32", "8 9", "200 200 2 100", "7 1"]
    assert out[4].startswith("ValueError: x must be contiguous (scale, at test_exported.py:")
    assert out[5].startswith(
        "TypeError: scale(int32[_], float) was not exported; the exported calls are"
    )
    launches = [line for line in log.read_text().splitlines() if line.startswith("launch")]
    assert len(launches) == 5
    assert all("scale" in line for line in launches)


NORMS = """
#include "norms.h"

#include <cstdio>

int main() {
  alignas(64) float x[6 * 40] = {}, weight[40] = {}, y[6 * 40];
  int64_t shape[] = {6, 40}, row[] = {40}, wrong[] = {6, 39}, rest[] = {6};
  const auto tensor = [](float* data, int ndim, int64_t* sizes) {
    return DLTensor{data, {kDLCPU, 0}, ndim, {kDLFloat, 32, 1}, sizes, nullptr, 0};
  };
  DLTensor from = tensor(x, 2, shape), scale = tensor(weight, 1, row), to = tensor(y, 2, shape);
  norms::layer_norm_into(&to, &from, &scale, &scale);
  const auto [again, mean, over_std] = norms::layer_norm_forward(&from, &scale, &scale, 1e-5);
  const auto [dx, dw, db] =
      norms::layer_norm_backward(&to, mean, over_std, &from, &scale, &scale, 1e-5);
  std::printf("%d %d %d\\n", static_cast<int>(dx.size(1)), static_cast<int>(dw.ndim()),
              static_cast<int>(db.size(0)));
  DLTensor shorter = tensor(x, 2, wrong), inside = tensor(x + 3, 1, rest);
  DLTensor totals = tensor(y, 1, rest);
  norms::total(&from, &totals);
  const auto refused = [](const auto& call) {
    try {
      call();
    } catch (const tvm::ffi::Error& error) {
      std::printf("%s: %s\\n", error.kind().c_str(), error.message().c_str());
    }
  };
  refused([&] { norms::layer_norm(&shorter, &scale, &scale); });
  refused([&] { norms::total(&from, &inside); });
}
"""


def test_functions_that_reduce(fake_driver, gxx, tmp_path):
    with use_driver("emulator"):

        @ew.fuse
        def layer_norm(x, weight, bias, eps=1e-5):
            apart = x - ew.mean(x, axis=-1, keepdims=True)
            scale = ew.rsqrt(ew.mean(apart * apart, axis=-1, keepdims=True) + eps)
            return apart * scale * weight + bias

        sums = ew.fuse(lambda x: ew.sum(x, axis=-1))

        @cl.function
        def total(x, out):
            sums(x, out=out)

        host = layer_norm.as_function(backward="auto")
        forward, backward = host._gradient.forward, host._gradient.function
        x, weight = np.ones((6, 40), np.float32), np.ones(40, np.float32)
        host(x, weight, weight)
        saved = forward(x, weight, weight, 1e-5)[1:]
        backward(x, *saved, x, weight, weight, 1e-5)
        total(x, np.empty(6, np.float32))
        cl.ship.export(
            [host, forward, backward, total], tmp_path / "libnorms.so", header=tmp_path / "norms.h",
            flags=["-O0"],
        )  # fmt: skip
    (tmp_path / "main.cpp").write_text(NORMS)
    run(compiler(gxx, tmp_path, tmp_path / "main.cpp", "norms", tmp_path / "main"))
    log = tmp_path / "log"
    out = run([tmp_path / "main"], env=environment(fake_driver, log)).splitlines()
    assert out[0] == "40 1 40"
    assert out[1].startswith("NotImplementedError: layer_norm was exported without the path that")
    assert out[2].startswith("ValueError: <lambda>: out overlaps argument x, which the kernels")
    launches = [line for line in log.read_text().splitlines() if line.startswith("launch")]
    assert len(launches) == 5


RUST = """
use std::ffi::c_void;

#[repr(C)]
struct Any { kind: i32, padding: u32, value: u64 }
#[repr(C)]
struct Tensor { data: *mut c_void, device_type: i32, device: i32, ndim: i32, code: u8, bits: u8,
                lanes: u16, shape: *const i64, strides: *const i64, offset: u64 }

#[repr(align(64))]
struct Aligned([f32; 64]);

#[link(name = "mylib")]
extern "C" {
    fn __tvm_ffi_scale_into(handle: *mut c_void, arguments: *const Any, count: i32,
                            result: *mut Any) -> i32;
    fn __tvm_ffi_double(handle: *mut c_void, arguments: *const Any, count: i32,
                        result: *mut Any) -> i32;
}

fn main() {
    let mut x = Aligned([1f32; 64]);
    let mut y = Aligned([0f32; 64]);
    let shape = [64i64];
    let tensor = |data: &mut [f32; 64]| Tensor {
        data: data.as_mut_ptr() as *mut c_void, device_type: 1, device: 0, ndim: 1, code: 2,
        bits: 32, lanes: 1, shape: shape.as_ptr(), strides: std::ptr::null(), offset: 0 };
    let (from, to) = (tensor(&mut x.0), tensor(&mut y.0));
    // 7: a pointer to a DLTensor; 3: a float; 1: an int.
    let arguments = [
        Any { kind: 7, padding: 0, value: &to as *const Tensor as u64 },
        Any { kind: 7, padding: 0, value: &from as *const Tensor as u64 },
        Any { kind: 3, padding: 0, value: 2.5f64.to_bits() },
    ];
    let mut result = Any { kind: 0, padding: 0, value: 0 };
    let null = std::ptr::null_mut();
    assert_eq!(unsafe { __tvm_ffi_scale_into(null, arguments.as_ptr(), 3, &mut result) }, 0);
    let number = [Any { kind: 1, padding: 0, value: 21 }];
    assert_eq!(unsafe { __tvm_ffi_double(null, number.as_ptr(), 1, &mut result) }, 0);
    assert_eq!(unsafe { __tvm_ffi_double(null, number.as_ptr(), 0, &mut result) }, -1);
    println!("{} {}", result.kind, result.value);
}
"""


@pytest.mark.needs("rustc")
def test_rust(exported, fake_driver, tmp_path):
    (tmp_path / "main.rs").write_text(RUST)
    tvm = Path(libinfo.find_libtvm_ffi()).parent
    run(["rustc", "--edition=2021", tmp_path / "main.rs", "-L", exported, "-L", tvm,
         "-C", f"link-arg=-Wl,-rpath,{exported}:{tvm},--allow-shlib-undefined",
         "-o", tmp_path / "main"])  # fmt: skip
    log = tmp_path / "log"
    assert run([tmp_path / "main"], env=environment(fake_driver, log)) == "1 42\n"
    (launch,) = [line for line in log.read_text().splitlines() if line.startswith("launch")]
    assert "scale" in launch


COUNTED = """
import ctypes, os, sys
import numpy as np
import tvm_ffi

library, function, *numbers = sys.argv[1:]
driver = ctypes.CDLL(os.environ["CULAUNCH_DRIVER"])
device, context = ctypes.c_int(), ctypes.c_void_p()
assert driver.cuInit(0) == driver.cuDeviceGet(ctypes.byref(device), 0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
assert driver.cuCtxSetCurrent(context) == 0  # as with any framework
count = driver.fake_driver_calls
count.restype, count.argtypes = ctypes.c_uint64, [ctypes.c_char_p]
call = getattr(tvm_ffi.load_module(library), function)
x, y = (tvm_ffi.from_dlpack(np.zeros(100, np.float32)) for _ in range(2))
arguments = [y, x, *map(float, numbers)]
for _ in range(20):
    call(*arguments)
before = [count(name) for name in (None, b"cuLaunchKernelEx")]
for _ in range(10):
    call(*arguments)
print(*(count(name) - one for name, one in zip((None, b"cuLaunchKernelEx"), before)))
"""
DOOR = """
CULAUNCH_EMBED_CUBIN(kernels);
void scale(tvm::ffi::TensorView y, tvm::ffi::TensorView x) {
  namespace ffi = culaunch::ffi;
  CULAUNCH_CHECK_SHAPE(x, 100);
  CULAUNCH_GET_KERNEL(kernels, "scale<float>")
  ({2, 64, 0, ffi::CurrentStream(x)}, ffi::Data(y), ffi::Data(x), 2.0f, 100);
}
"""


@pytest.mark.parametrize("door", ["exported", "inline"])
def test_a_launch_of_a_library_is_one_call_of_the_driver(
    run_after_torch, exported, fake_driver, tmp_path, door
):
    if door == "exported":
        words = [exported / "libmylib.so", "scale_into", "2.5"]
    else:
        image = cl.compile(KERNELS, arch="sm_90", names=["scale<float>"])
        built = cl.cpp.build_inline(
            "door",
            DOOR,
            functions="scale",
            embed_cubin={"kernels": image},
            flags=["-O0"],
            build_directory=tmp_path,
        )
        words = [built, "scale"]
    variables = {
        "CULAUNCH_DRIVER": str(fake_driver),
        "FAKE_DRIVER_LOG_FILE": str(tmp_path / "log"),
    }
    done = run_after_torch(["-c", COUNTED, *words], env={**os.environ, **variables})
    assert (done.returncode, done.stdout) == (0, "10 10\n"), done.stderr
