"""The null driver, the fake one without its log, answers as a driver would what launching asks."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.needs("g++")

# As in cuda.h.
INVALID_VALUE, NOT_FOUND, NOT_SUPPORTED = 1, 500, 801


@pytest.fixture(scope="module")
def null(overhead: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    # Under another SONAME: with its own, whatever asks for libcuda.so.1 in this process from now
    # on would get it, the other tests too.
    built = overhead("build").build_null_driver()
    copy = tmp_path_factory.mktemp("null") / "libnull.so.1"
    copy.write_bytes(built.read_bytes().replace(b"libcuda.so.1\0", b"libnull.so.1\0"))
    library = ctypes.CDLL(str(copy))
    library.fake_driver_launches.restype = ctypes.c_uint64
    return library


def resolve(null: ctypes.CDLL, name: str) -> int:
    address, status = ctypes.c_void_p(), ctypes.c_int(-1)
    code = null.cuGetProcAddress_v2(
        name.encode(), ctypes.byref(address), 12080, ctypes.c_uint64(0), ctypes.byref(status)
    )
    assert (code, status.value) == (0, 0)
    assert address.value
    return address.value


def kernel(null: ctypes.CDLL, name: str, sizes: list[int]) -> ctypes.c_void_p:
    null.fake_driver_declare(name.encode(), len(sizes), (ctypes.c_size_t * len(sizes))(*sizes))
    library, found = ctypes.c_void_p(), ctypes.c_void_p()
    assert (
        null.cuLibraryLoadData(ctypes.byref(library), b"image", None, None, 0, None, None, 0) == 0
    )
    assert null.cuLibraryGetKernel(ctypes.byref(found), library, name.encode()) == 0
    return found


@pytest.mark.parametrize("name", ["cuInit", "cuMemAlloc", "cuMemAlloc_v2", "cuLaunchKernelEx"])
def test_functions_are_found_by_plain_and_versioned_names(null: ctypes.CDLL, name: str) -> None:
    exported = name if name != "cuMemAlloc" else "cuMemAlloc_v2"
    assert resolve(null, name) == ctypes.cast(getattr(null, exported), ctypes.c_void_p).value


@pytest.mark.parametrize("name", ["cuMulticastCreate", "cuNoSuchFunction"])
def test_everything_else_says_not_supported(null: ctypes.CDLL, name: str) -> None:
    assert ctypes.CFUNCTYPE(ctypes.c_int)(resolve(null, name))() == NOT_SUPPORTED


def test_declared_kernels_have_their_layout(null: ctypes.CDLL) -> None:
    found = kernel(null, "layout", [8, 4, 8, 1, 2, 128])
    layout = []
    for index in range(6):
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        code = null.cuKernelGetParamInfo(
            found, ctypes.c_size_t(index), ctypes.byref(offset), ctypes.byref(size)
        )
        assert code == 0
        layout.append((offset.value, size.value))
    assert layout == [(0, 8), (8, 4), (16, 8), (24, 1), (26, 2), (32, 128)]
    beyond = null.cuKernelGetParamInfo(found, ctypes.c_size_t(6), None, None)
    assert beyond == INVALID_VALUE


def test_undeclared_kernel_is_not_found(null: ctypes.CDLL) -> None:
    library, found = ctypes.c_void_p(), ctypes.c_void_p()
    null.cuLibraryLoadData(ctypes.byref(library), b"image", None, None, 0, None, None, 0)
    assert null.cuLibraryGetKernel(ctypes.byref(found), library, b"undeclared") == NOT_FOUND


def test_declaring_again_replaces_the_layout(null: ctypes.CDLL) -> None:
    first, second = kernel(null, "again", [8]), kernel(null, "again", [4, 4])
    assert first.value == second.value
    size = ctypes.c_size_t()
    assert null.cuKernelGetParamInfo(second, ctypes.c_size_t(1), None, ctypes.byref(size)) == 0
    assert size.value == 4


def test_declarations_beyond_the_limits_are_refused(null: ctypes.CDLL) -> None:
    sizes = (ctypes.c_size_t * 1)(8)
    assert null.fake_driver_declare(b"x" * 256, 1, sizes) == -1
    assert null.fake_driver_declare(b"negative", -1, sizes) == -1


def test_launches_are_counted(null: ctypes.CDLL) -> None:
    found = kernel(null, "counted", [])
    config = ctypes.create_string_buffer(256)
    before = null.fake_driver_launches()
    assert null.cuLaunchKernelEx(config, found, None, None) == 0
    assert null.cuLaunchKernel(found, 1, 1, 1, 32, 1, 1, 0, None, None, None) == 0
    assert null.fake_driver_launches() == before + 2
    assert null.cuLaunchKernelEx(config, None, None, None) != 0
    assert null.fake_driver_launches() == before + 2


def test_memory_is_the_hosts(null: ctypes.CDLL) -> None:
    pointer, context = ctypes.c_uint64(), ctypes.c_void_p()
    null.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    null.cuCtxSetCurrent(context)
    assert null.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(16)) == 0
    assert pointer.value % 256 == 0
    size, back = ctypes.c_size_t(5), ctypes.create_string_buffer(5)
    assert null.cuMemcpyHtoD_v2(pointer, b"hello", size) == 0
    assert null.cuMemcpyDtoH_v2(back, pointer, size) == 0
    assert back.raw == b"hello"
    assert null.cuMemFree_v2(pointer) == 0
    null.cuCtxSetCurrent(None)


def test_device_has_the_limits_of_an_sm_90(null: ctypes.CDLL) -> None:
    value, found = ctypes.c_int(), {}
    for name, attribute in {
        "major": 75,
        "minor": 76,
        "optin": 97,
        "threads": 1,
    }.items():
        assert null.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0) == 0
        found[name] = value.value
    assert found == {"major": 9, "minor": 0, "optin": 232448, "threads": 1024}


def test_device_types_are_those_of_every_array(null: ctypes.CDLL) -> None:
    assert list((ctypes.c_int * 5).in_dll(null, "culaunch_device_types")) == [1, 2, 13, 3, -1]


def test_a_context_is_current_once_it_is_set(null: ctypes.CDLL) -> None:
    context, seen = ctypes.c_void_p(), ctypes.c_void_p()
    assert null.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert null.cuCtxSetCurrent(context) == 0
    assert null.cuCtxGetCurrent(ctypes.byref(seen)) == 0
    assert seen.value == context.value
    assert null.cuCtxSetCurrent(None) == 0
    assert null.cuCtxGetDevice(ctypes.byref(ctypes.c_int())) != 0


@pytest.mark.needs("nvrtc")
def test_nvrtc_compiles_beside_it(null: ctypes.CDLL, tmp_path: Path) -> None:
    # NVRTC opens libcuda.so.1 itself and crashed if that had no cuGetExportTable.
    code = (
        "import ctypes, sys, culaunch\n"
        "ctypes.CDLL(sys.argv[1])\n"
        "print(culaunch.compile('__global__ void k() {}', arch='sm_90').format)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, null._name],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CULAUNCH_CACHE_DIR": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (0, "cubin\n"), done.stderr


def test_a_daemon_thread_that_launches_as_python_ends(overhead: Callable[[str], Any]) -> None:
    """CPython ends the thread where it takes the GIL back: no C++ frame may abort then."""
    script = """
import ctypes, os, threading
import culaunch as cl
null = ctypes.CDLL(os.environ["CULAUNCH_DRIVER"])
null.fake_driver_declare(b"nothing", 0, (ctypes.c_size_t * 0)())
ptx = ".version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry nothing() { ret; }"
kernel = cl.load(ptx.encode())["nothing"]
launcher = kernel[1, 1]
started = threading.Event()
def work():
    while True:
        launcher()
        started.set()
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
started.wait()
raise SystemExit(3)
"""
    null = str(overhead("build").build_null_driver())
    for _ in range(3):
        result = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "CULAUNCH_DRIVER": null},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert result.returncode == 3, result.stderr
