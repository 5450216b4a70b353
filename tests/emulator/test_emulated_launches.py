"""The emulated driver through the public API: what only an emulator says, and C++ beside it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from cuda_headers import cuda_include
from driver_table import ADD

import culaunch as cl
from culaunch import testing

NEWER = ADD.replace("sm_80", "sm_90")
FAULTS = """
extern "C" __global__ void past_the_end(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) x[i] = 1.0f;
}
extern "C" __global__ void race(int* out) {
  __shared__ int box[64];
  box[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = box[63 - threadIdx.x];
}
extern "C" __global__ void forever(int* out) {
  while (true) *(volatile int*)out = 1;
}
"""


@pytest.fixture(autouse=True)
def emulator():
    with testing.use_driver("emulator"):
        yield


def load(ptx=ADD):
    return cl.load(cl.Image(ptx.encode()))


@pytest.fixture(scope="module")
def faults(has):
    if not has("nvrtc"):
        pytest.skip("needs nvrtc")
    return cl.compile(FAULTS, arch="compute_80", line_info=True, name="faults.cu")


def in_child(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", "import culaunch as cl\n" + code],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "CULAUNCH_DRIVER": "emulator", **environment},
    )


# ---- memory


@pytest.mark.slow
def test_numpy_and_torch_arrays_are_device_memory():
    x = np.zeros(10, np.uint32)
    load()["add"][1, 10](x, 5)
    assert x.tolist() == [5] * 10
    torch = pytest.importorskip("torch")
    y = torch.zeros(10, dtype=torch.int32)
    load()["add"][1, 10](y, 6)
    assert y.tolist() == [6] * 10


def test_an_address_in_an_int_is_not_known():
    x = np.zeros(1 << 17, np.uint32)
    # The middle of a large array: its ends may lie directly beside memory that the emulator knows.
    address = x.ctypes.data + x.nbytes // 2
    with pytest.raises(cl.DriverError) as caught:
        load()["add"][1, 10](address, 5)
    assert caught.value.code == 700
    text = str(caught.value)
    assert "not addresses in an int" in text
    assert f"{address:#x}" in text
    assert "PTX line" in text


def test_arrays_of_a_call_that_failed_are_forgotten():
    kernel = load()["add"]
    x = np.zeros(10, np.uint32)
    with pytest.raises(TypeError):
        kernel[1, 10](x, "five")
    with pytest.raises(cl.DriverError, match="outside every allocation"):
        kernel[1, 10](x.ctypes.data, 5)
    assert not x.any()


def test_the_allocation_is_named(faults):
    x = np.zeros(100, np.float32)
    with pytest.raises(cl.DriverError) as caught:
        cl.load(faults)["past_the_end"][4, 32](x, 100)
    text = str(caught.value)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in text
    assert "0 bytes after the end of an allocation of 400 bytes" in text
    assert "block (3, 0, 0), thread (4, 0, 0)" in text
    assert "memory of the host" not in text
    assert "faults.cu:4" in text


# ---- faults and options


def test_a_fault_is_sticky_until_it_is_reset():
    module = load()
    with pytest.raises(cl.DriverError, match="CUDA_ERROR_LAUNCH_FAILED"):
        module["stop"][1, 1]()
    for call in (module["nothing"][1, 1], cl.synchronize, lambda: cl.empty(3, "f4")):
        with pytest.raises(cl.DriverError, match="kernel stop"):
            call()
    testing.reset_emulator()
    module["nothing"][1, 1]()
    cl.synchronize()


def test_options_of_a_block(faults):
    kernel = cl.load(faults)["race"]
    out = np.zeros(64, np.int32)
    with testing.emulator_options(check_uninitialized=False):
        kernel[1, 64](out)
        with (
            testing.emulator_options(check_races=True),
            pytest.raises(cl.DriverError, match="race"),
        ):
            kernel[1, 64](out)
        testing.reset_emulator()
        kernel[1, 64](out)
    with testing.emulator_options(time_limit=0.2), pytest.raises(cl.DriverError) as caught:
        cl.load(faults)["forever"][1, 1](out)
    assert caught.value.name == "CUDA_ERROR_LAUNCH_TIMEOUT"


@pytest.mark.slow
def test_options_from_the_environment():
    code = f"cl.load(cl.Image({ADD.encode()!r}))['nothing'][1, 1](); print('ran')"
    assert in_child(code, CULAUNCH_EMULATOR_OPTIONS="check_races, time_limit=5").stdout == "ran\n"
    wrong = in_child(code, CULAUNCH_EMULATOR_OPTIONS="check_rases")
    options = "the options are check_races, check_uninitialized"
    assert f"has the unknown option 'check_rases': {options}" in wrong.stderr
    wrong = in_child(code, CULAUNCH_EMULATOR_OPTIONS="time_limit=soon")
    assert "time_limit must be a float" in wrong.stderr


# ---- images and architectures


@pytest.mark.slow
def test_the_architecture_from_the_environment():
    code = (
        f"m = cl.load(cl.Image({NEWER.encode()!r})); m['nothing'][1, 1]()\n"
        "print(cl.driver.Device().arch, m['add'].occupancy(64).max_cluster)"
    )
    assert in_child(code, CULAUNCH_EMULATOR_ARCH="sm_90").stdout == "sm_90 8\n"
    done = in_child(code)
    assert "the image's PTX is for sm_90, and the emulated device is sm_80" in done.stderr
    done = in_child(code, CULAUNCH_EMULATOR_ARCH="H100")
    assert "must be an architecture such as 'sm_80' (got 'H100')" in done.stderr


@pytest.mark.needs("nvrtc")
def test_compile_makes_ptx():
    image = cl.compile('extern "C" __global__ void f(int* x) { *x = 3; }')
    x = np.zeros(1, np.int32)
    cl.load(image)["f"][1, 1](x)
    assert x[0] == 3


@pytest.mark.needs("nvrtc")
def test_the_newest_ptx_that_fits_is_taken():
    source = 'extern "C" __global__ void f(int* x) { *x = __CUDA_ARCH__; }__device__ int dummy;'
    arches = ("compute_75", "compute_80", "compute_90")
    both = cl.compiling.fatbin([cl.compile(source, arch=arch) for arch in arches])
    x = np.zeros(1, np.int32)
    cl.load(both)["f"][1, 1](x)
    assert x[0] == 800


@pytest.mark.needs("nvrtc")
def test_machine_code_alone_cannot_run(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("CULAUNCH_DRIVER", "cuda")
        image = cl.compile('extern "C" __global__ void f() {}', arch="sm_80")
    with pytest.raises(cl.DriverError, match="compile with PTX, as in arch='compute_80'") as caught:
        cl.load(image)["f"]
    assert caught.value.name == "CUDA_ERROR_NO_BINARY_FOR_GPU"


def test_an_instruction_that_is_unknown_is_named():
    ptx = ADD.replace("{ ret; }", "{ .reg .b32 %x; frobnicate.b32 %x, %x; ret; }")
    with pytest.raises((cl.DriverError, cl.ImageError), match=r"frobnicate"):
        load(ptx)["nothing"][1, 1]()


# ---- threads


def test_threads_launch_with_arrays_of_their_own():
    kernel = load()["add"]
    wrong = []

    def work(value):
        for _ in range(20):
            x = np.zeros(32, np.uint32)
            kernel[1, 32](x, value)
            if set(x.tolist()) != {value}:
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


LAST = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry last(.param .u64 out, .param .u64 array, .param .u64 index) {
.reg .b64 %o, %a, %i; .reg .b32 %v;
ld.param.u64 %o, [out]; ld.param.u64 %a, [array]; ld.param.u64 %i, [index];
add.u64 %a, %a, %i; ld.global.u8 %v, [%a]; st.global.u32 [%o], %v; ret;
}
"""


# ---- C++ in the same process

LIBRARY = r"""
#include <culaunch/culaunch.h>

#include <cstdio>

static const char kPtx[] = R"(@PTX@)";

// Launch `add` on memory of the driver, and return the sum of what it wrote; text says what failed.
extern "C" int run(unsigned value, char* text, size_t size) {
  try {
    static culaunch::Module module(kPtx, sizeof kPtx);
    culaunch::Driver& driver = culaunch::Driver::Get();
    const culaunch::DeviceGuard guard(driver, 0);
    CUdeviceptr memory = 0;
    driver.Check(driver.cuMemAlloc(&memory, 40), "cuMemAlloc");
    module["add"]({1, 10}, memory, value);
    unsigned words[10];
    driver.Check(driver.cuMemcpyDtoHAsync(words, memory, sizeof words, nullptr), "copy");
    driver.Check(driver.cuMemFree(memory), "cuMemFree");
    int sum = 0;
    for (unsigned word : words) sum += static_cast<int>(word);
    std::snprintf(text, size, "%s", driver.name().c_str());
    return sum;
  } catch (const std::exception& error) {
    std::snprintf(text, size, "%s", error.what());
    return -1;
  }
}

// A raw pointer of the host's: the emulator was told of no array.
extern "C" int run_on(unsigned* words, char* text, size_t size, int notes) {
  try {
    static culaunch::Module module(kPtx, sizeof kPtx);
    if (notes != 0) culaunch::NoteArray(words, 40);
    module["add"]({1, 10}, static_cast<void*>(words), 1u);
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(text, size, "%s", error.what());
    return -1;
  }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cpp")
    source, target = folder / "launch.cpp", folder / "liblaunch.so"
    source.write_text(LIBRARY.replace("@PTX@", ADD))
    command = ["g++", "-std=c++17", "-shared", "-fPIC", "-O0", "-Wall", str(source)]
    command += [f"-I{cl.cpp.include_dir()}", f"-I{cuda_include()}", "-ldl", "-o", str(target)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(target))


def call(function, argument, *more):
    text = ctypes.create_string_buffer(4000)
    return function(argument, text, ctypes.c_size_t(len(text)), *more), text.value.decode()


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_a_cpp_library_uses_the_published_driver(library):
    assert call(library.run, ctypes.c_uint(7)) == (70, "emulator")


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_a_cpp_library_with_a_pointer_of_the_hosts(library):
    # The middle of large memory, whose start may lie directly beside memory that is known.
    memory = (ctypes.c_uint * (1 << 18))()
    words = (ctypes.c_uint * (1 << 17)).from_buffer(memory, 1 << 19)
    assert call(library.run_on, words, 1)[0] == 0
    assert list(words[:11]) == [1] * 10 + [0]
    code, text = call(library.run_on, words, 0)
    assert code == -1
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in text
    assert "the emulator knows only the arrays among the launch's arguments" in text
    testing.reset_emulator()
    assert call(library.run, ctypes.c_uint(1)) == (10, "emulator")


@pytest.mark.slow
def test_a_cpp_program_is_not_sent_in_a_circle(tmp_path):
    source = r"""
#include <culaunch/culaunch.h>
#include <cstdio>
int main() {
  try { culaunch::Driver::Get(); } catch (const std::exception& error) { std::puts(error.what()); }
}
"""
    (tmp_path / "main.cpp").write_text(source)
    command = ["g++", "-std=c++17", "-O0", "main.cpp", f"-I{cl.cpp.include_dir()}"]
    command += [f"-I{cuda_include()}", "-ldl", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    environment = {**os.environ, "CULAUNCH_DRIVER": "emulator"}
    text = subprocess.check_output([tmp_path / "program"], env=environment, text=True)
    assert "written in Python, and this process has no Python with culaunch" in text


# ---- what arrays span


def test_arrays_that_are_no_numbers_are_known_with_all_their_bytes():
    kernel = cl.load(LAST)["last"]
    record = np.dtype([("a", "i1"), ("b", "f8"), ("c", "S3")])
    for kind in ("U12", "S12", "V12", record, "M8[ns]", "U1"):
        array = np.zeros(9, kind)
        array.view("u1")[-1] = 7
        out = np.zeros(1, np.uint32)
        kernel[1, 1](out, array, array.nbytes - 1)
        assert out[0] == 7, kind


def test_an_empty_tensor_leaves_the_others_known():
    torch = pytest.importorskip("torch")
    out, array = torch.zeros(1, dtype=torch.int32), torch.arange(200, dtype=torch.uint8)
    kernel = cl.load(LAST)["last"]
    with_empty = cl.load(LAST.replace(b"last(", b"last(.param .u64 none, "))["last"]
    kernel[1, 1](out, array, 150)
    assert out[0] == 150
    for empty in (torch.empty(0), torch.empty(0, 3), np.zeros(0, "f4")):
        out.zero_()
        with_empty[1, 1](empty, out, array, 199)
        assert out[0] == 199


def test_a_kernel_may_touch_the_variables_of_another_module() -> None:
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    shared = cl.Image((head + ".visible .global .u32 v = 5;\n.entry k() { ret; }").encode())
    body = """.visible .entry read(.param .u64 at, .param .u64 out) {
    .reg .b64 %a, %o; .reg .b32 %v;
    ld.param.u64 %a, [at]; ld.param.u64 %o, [out]; ld.global.u32 %v, [%a];
    st.global.u32 [%o], %v; ret; }"""
    reader = cl.Image((head + body).encode())
    with testing.use_driver("emulator"):
        out = cl.to_device(np.zeros(1, np.uint32))
        kernel = cl.load(reader)["read"]
        with cl.load(shared) as module:
            address = module.get_global("v").address
            kernel[1, 1](address, out)
            assert out.numpy().tolist() == [5]
        with pytest.raises(cl.DriverError, match="outside every allocation"):
            kernel[1, 1](address, out)
    testing.reset_emulator()
