"""Programs that know nothing of culaunch, on the emulator as libcuda.so.1."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from culaunch._compile.nvrtc import loaded_library

pytestmark = pytest.mark.needs("click", "gcc")


def test_a_program_launches_with_every_kind_of_memory(compiled, emulate):
    done = emulate(compiled("launches.c"))
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_streams_capture_graphs(compiled, emulate):
    done = emulate(compiled("captures.c"))
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_graphs_allocate_memory(compiled, emulate):
    done = emulate(compiled("graph_memory.c"))
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_arrays_are_copied_and_sampled(compiled, emulate):
    done = emulate(compiled("arrays.c"))
    assert (done.stdout, done.returncode) == ("done\n", 0)


def test_a_fault_is_reported_once_as_are_refused_images_and_missing_functions(compiled, emulate):
    done = emulate(compiled("faults.c"))
    assert (done.stdout, done.returncode) == ("done\n", 0)
    image, missing, refused, kernel, fault, *rest = done.stderr.splitlines()
    assert image == "culaunch: the image is neither PTX nor a cubin nor a fatbin"
    shared = "cuIpcGetMemHandle is not emulated: it returns CUDA_ERROR_NOT_SUPPORTED"
    assert missing == f"culaunch: {shared}"
    assert refused == "culaunch: the block (2000, 1, 1) exceeds (1024, 1024, 64)"
    assert kernel == "  kernel add"
    assert fault.startswith("culaunch: 4-byte read of global address 0x")
    assert rest[0] == "  kernel add"
    assert "ld.global.u32 %r6, [%d2]" in rest[2]
    assert rest[3].startswith("  if this is host memory: kernels can use memory of cuMemAlloc, ")
    assert len(rest) == 4


def test_threads_start_the_driver_together_and_a_forked_process_launches(compiled, emulate):
    done = emulate(compiled("threads.c"))
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


@pytest.mark.needs("nvrtc")
def test_machine_code_of_nvrtc_is_ptx(compiled, emulate, monkeypatch):
    nvrtc = Path(loaded_library())
    monkeypatch.setenv("LIBRARY_PATH", str(nvrtc.parent))
    program = compiled("nvrtc.c", f"-l:{nvrtc.name}")
    done = emulate(program, LD_LIBRARY_PATH=str(nvrtc.parent))
    assert (done.stdout, done.returncode) == ("done\n", 0)


def test_the_output_of_kernels_is_in_order_with_the_programs(compiled, emulate):
    done = emulate(compiled("prints.c"))
    assert done.stdout == "before\nthread 0\nthread 1\nafter\n"
    assert (done.stderr, done.returncode) == ("", 3)


def test_options_reach_the_emulator(compiled, emulate):
    done = emulate("--arch", "sm_90", "--options", "time_limit=9", compiled("launches.c"))
    assert "sm_80" in done.stdout  # the program expects the device of a run without options
    done = emulate("--options", "no_check=1", compiled("launches.c"))
    assert "CULAUNCH_EMULATOR_OPTIONS has the unknown option 'no_check'" in done.stderr
    assert "culaunch: the emulator's libcuda.so.1 does not work: Python" in done.stderr
    assert done.returncode == 1


def test_without_the_command_the_library_says_how_to_start(compiled, library):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    environment.pop("CULAUNCH_EMULATE_PYTHON", None)
    command = [compiled("launches.c")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert "cuInit(0) is 304" in done.stdout  # CUDA_ERROR_OPERATING_SYSTEM
    assert done.stderr == (
        "culaunch: the emulator's libcuda.so.1 does not work: it starts Python. Start the program "
        "with `culaunch emulate PROGRAM`\n"
    )


CTYPES = """
import ctypes, sys, threading
cuda = ctypes.CDLL("libcuda.so.1")
count, name = ctypes.c_int(), ctypes.create_string_buffer(100)
assert cuda.cuInit(0) == cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
assert cuda.cuDeviceGetName(name, 100, 0) == 0
context, module = ctypes.c_void_p(), ctypes.c_void_p()
def run():
    assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
    assert cuda.cuCtxSynchronize() == 0
thread = threading.Thread(target=run)
thread.start()
thread.join()
assert cuda.cuCtxSynchronize() == 201
print(count.value, name.value.decode())
# A finalizer that C code calls after Python's own end would get CUDA_ERROR_DEINITIALIZED.
ctypes.pythonapi.Py_AtExit.argtypes = [ctypes.c_void_p]
assert ctypes.pythonapi.Py_AtExit(ctypes.cast(cuda.cuCtxSynchronize, ctypes.c_void_p)) == 0
"""


def test_a_python_program_uses_it_with_ctypes(emulate):
    done = emulate(sys.executable, "-c", CTYPES)
    assert done.stdout == "1 culaunch emulator (sm_80)\n"
    assert (done.stderr, done.returncode) == ("", 0)


PENDING = """
import ctypes, sys
cuda, handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), 0) == 0
assert cuda.cuCtxSetCurrent(handle) == 0
library = ctypes.PyDLL(sys.argv[1])
for with_gil in (1, 0):
    # The first call finds the functions, which also calls Python.
    try:
        library.Raise(with_gil)
    except KeyError as error:
        assert error.args == ("pending",)
    else:
        raise AssertionError("no exception is pending")
    words = (ctypes.c_uint * 16)()
    memory = ctypes.c_ulonglong.in_dll(library, "memory")
    assert cuda.cuMemcpyDtoH_v2(words, memory, 64) == 0
    assert set(words) == {0x12345678}
    print(*(ctypes.c_int * 3).in_dll(library, "codes"))
"""


def test_a_pending_exception_stays_pending(compiled, emulate):
    library = compiled("pending_exception.c", "-shared", "-fPIC")
    done = emulate(sys.executable, "-c", PENDING, library)
    assert (done.stdout, done.stderr, done.returncode) == ("400 0 0\n400 0 0\n", "", 0)


AFTER_PYTHON = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
at_exit = ctypes.pythonapi.Py_AtExit
at_exit.argtypes = [ctypes.c_void_p]
library.CallDriver()
assert at_exit(ctypes.cast(library.CallDriver, ctypes.c_void_p)) == 0
"""


def test_after_python_memory_is_freed_and_nothing_else_works(compiled, emulate):
    library = compiled("after_python.c", "-shared", "-fPIC")
    done = emulate(sys.executable, "-c", AFTER_PYTHON, library)
    # In Python, 16 is not an allocation, and no context is current.
    assert done.stdout == "1 201\n0 4\n"
    assert (done.stderr, done.returncode) == ("", 0)


SHARED = """
import ctypes
import culaunch as cl, numpy as np
cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
if FIRST:
    assert cl.driver.driver_name() == "emulator"
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(16)) == 0
else:
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(16)) == 0
    assert cl.driver.driver_name() == "emulator"
module = cl.load(PTX.encode())
x = np.arange(4, dtype="i4")
if MOVED:
    x = cl.to_device(x)
module["add"][1, 4](address.value, x, 4)
back = (ctypes.c_int * 4)()
assert cuda.cuMemcpyDtoH_v2(back, address, ctypes.c_size_t(16)) == 0
print(*back)
"""


@pytest.mark.parametrize("first", [True, False])
def test_culaunch_and_the_library_have_the_same_memory(emulate, ptx, first):
    program = f"FIRST, MOVED, PTX = {first}, False, {ptx!r}\n{SHARED}"
    done = emulate(sys.executable, "-c", program)
    assert (done.stdout, done.stderr) == ("5 6 7 8\n", "")


def test_strict_is_culaunchs_strict_emulator(emulate, ptx):
    program = f"FIRST, PTX = True, {ptx!r}\n{SHARED}"
    done = emulate("--strict", sys.executable, "-c", f"MOVED = False\n{program}")
    assert "move it with its framework" in done.stderr
    assert done.returncode == 1
    done = emulate("--strict", sys.executable, "-c", f"MOVED = True\n{program}")
    assert (done.stdout, done.stderr) == ("5 6 7 8\n", "")


def test_culaunch_takes_the_library_as_a_driver_by_its_path(emulate, library, ptx):
    program = (
        "import culaunch as cl, numpy as np\n"
        f"cl.driver.set_driver({str(library)!r})\n"
        f"module = cl.load({ptx.encode()!r})\n"
        "y, x = cl.zeros(8, 'int32'), cl.to_device(np.arange(8, dtype='i4'))\n"
        "module['add'][1, 8](y, x, 8)\n"
        "print(*y.numpy())\n"
        "try:\n"
        "    module['add'][1, 8](np.zeros(8, 'i4'), x, 8)\n"
        "except ValueError as error:\n"
        "    print(str(error).partition('move')[1])\n"
    )
    done = emulate(sys.executable, "-c", program)
    assert (done.stdout, done.stderr) == ("5 6 7 8 9 10 11 12\nmove\n", "")


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_a_cpp_program_over_culaunchs_header(compiled, emulate, tmp_path):
    import culaunch as cl

    done = emulate(compiled("over_culaunch.cpp", "-std=c++17", f"-I{cl.cpp.include_dir()}", "-ldl"))
    values, error, *_ = done.stdout.splitlines()
    assert values == "emulator: 7 9 11 13"
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in error
    assert "outside every allocation" in error
    assert done.stderr.count("outside every allocation") == 1
    assert done.returncode == 1


def test_the_program_must_exist(emulate):
    done = emulate("./no-such-program", "--help")
    assert done.returncode == 1
    assert "PROGRAM must be a program (got './no-such-program', not found)" in done.stderr


def test_options_after_the_program_are_the_programs(emulate):
    done = emulate(sys.executable, "-c", "import sys; print(sys.argv[1:])", "--arch", "--strict")
    assert done.stdout == "['--arch', '--strict']\n"
