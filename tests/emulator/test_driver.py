"""The emulated driver as C code sees it: every function of the table, its results and errors."""

from __future__ import annotations

import ctypes
import sys
import threading

import numpy as np
import pytest
from driver_table import ADD, Table
from emulator_internals import ERRORS, Device, DeviceAttribute, EmulatedDriver, PtxImage, Result

from culaunch import _core

INT, SIZE, HANDLE, ADDRESS = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_ulonglong
INVALID_VALUE, NO_MEMORY = Result.INVALID_VALUE, Result.OUT_OF_MEMORY
INVALID_CONTEXT, INVALID_HANDLE = Result.INVALID_CONTEXT, Result.INVALID_HANDLE
NOT_FOUND = Result.NOT_FOUND


def test_the_table_has_the_functions_of_the_header():
    # The one device has no peers and one context.
    # Streams capture nothing.
    optional = {
        "cuStreamGetGreenCtx", "cuStreamBeginCapture", "cuStreamEndCapture",
        "cuGraphInstantiateWithParams",
        "cuCtxEnablePeerAccess", "cuCtxGetId", "cuDeviceCanAccessPeer",
    }  # fmt: skip
    implemented = {name for name in dir(EmulatedDriver) if name.startswith("cu")}
    assert implemented == set(_core.Driver.prototypes()) - optional


# ---- the driver and the device


def test_the_shared_memory_that_cuda_keeps_for_itself(table):
    number = DeviceAttribute.RESERVED_SHARED_MEMORY_PER_BLOCK
    assert table.out("cuDeviceGetAttribute", INT, number, 0) == 1024


def test_the_driver(table):
    assert table("cuInit", 0) == 0
    assert table("cuInit", 1) == INVALID_VALUE
    assert table.out("cuDriverGetVersion", INT) >= 12040


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_errors_have_names_and_texts(table, code):
    assert table.name(code).startswith("CUDA_")
    assert table.text(code)


def test_what_is_no_error_has_neither(table):
    found = ctypes.c_void_p(5)
    for function in ("cuGetErrorName", "cuGetErrorString"):
        assert table(function, 12345, ctypes.byref(found)) == INVALID_VALUE
        assert found.value is None


def test_the_device(table):
    assert table.out("cuDeviceGetCount", INT) == 1
    assert table.out("cuDeviceGet", INT, 0) == 0
    assert table("cuDeviceGet", ctypes.byref(INT()), 1) == 101
    name = ctypes.create_string_buffer(100)
    assert table("cuDeviceGetName", name, 100, 0) == 0
    assert name.value == b"culaunch emulator (sm_80)"
    assert table("cuDeviceGetName", name, 5, 0) == 0
    assert name.value == b"cula"
    assert table("cuDeviceGetName", name, 0, 0) == INVALID_VALUE


def test_attributes_of_the_device(table):
    def attribute(number):
        return table.out("cuDeviceGetAttribute", INT, number, 0)

    assert (attribute(75), attribute(76)) == (8, 0)
    assert attribute(1) == 1024
    assert attribute(10) == 32
    assert attribute(97) == 163 * 1024
    assert attribute(95) == 1
    assert attribute(120) == 0  # clusters: sm_80 has none
    for number in (0, -1, 10_000):
        code = table("cuDeviceGetAttribute", ctypes.byref(INT()), number, 0)
        assert code == INVALID_VALUE
    assert table("cuDeviceGetAttribute", ctypes.byref(INT()), 1, 3) == Result.INVALID_DEVICE


@pytest.mark.parametrize(("arch", "shared"), [("sm_86", 99), ("sm_90", 227), ("sm_120", 99)])
def test_another_architecture(arch, shared):
    table = Table(arch)
    assert table.out(
        "cuDeviceGetAttribute", INT, DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0
    ) == (shared * 1024)
    number = int(arch[3:])
    found = [table.out("cuDeviceGetAttribute", INT, n, 0) for n in (75, 76)]
    assert found == list(divmod(number, 10))


# ---- contexts and streams


def test_contexts_are_a_stack(table):
    assert table.out("cuCtxGetCurrent", HANDLE) == table.context
    assert table("cuCtxPushCurrent", table.context) == 0
    assert table("cuCtxPushCurrent", 0x77) == INVALID_CONTEXT
    for _ in range(2):
        assert table.out("cuCtxPopCurrent", HANDLE) == table.context
    assert table("cuCtxPopCurrent", ctypes.byref(HANDLE())) == INVALID_CONTEXT
    assert table.out("cuCtxGetCurrent", HANDLE) is None
    assert table("cuCtxGetDevice", ctypes.byref(INT())) == INVALID_CONTEXT


def test_what_needs_a_context(table, library):
    nothing = table.kernel(library, "nothing")
    table.out("cuCtxPopCurrent", HANDLE)
    memory = np.zeros(4, np.uint8)
    assert table.launch(nothing) == INVALID_CONTEXT
    assert table("cuMemAlloc", ctypes.byref(ADDRESS()), 16) == INVALID_CONTEXT
    assert table("cuMemsetD8Async", 4096, 0, 4, None) == INVALID_CONTEXT
    assert table("cuMemcpyDtoHAsync", memory.ctypes.data, 4096, 4, None) == INVALID_CONTEXT
    assert table("cuCtxSynchronize") == INVALID_CONTEXT
    stream = ctypes.byref(HANDLE())
    assert table("cuStreamCreateWithPriority", stream, 0, 0) == INVALID_CONTEXT
    assert "no context is current" in table.text(INVALID_CONTEXT)


def test_a_stream_has_a_context_of_its_own(table, library):
    stream = table.out("cuStreamCreateWithPriority", HANDLE, 1, -1)
    table.out("cuCtxPopCurrent", HANDLE)
    nothing = table.kernel(library, "nothing")
    assert table.launch(nothing, stream=stream) == 0
    assert table.launch(nothing, stream=2) == INVALID_CONTEXT


def test_every_thread_has_a_stack_of_its_own(table):
    seen = []

    def look():
        seen.append(table.out("cuCtxGetCurrent", HANDLE))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [None]


def test_streams(table, library):
    stream = table.out("cuStreamCreateWithPriority", HANDLE, 1, -1)
    assert table("cuStreamSynchronize", stream) == 0
    context = HANDLE()
    assert table("cuStreamGetCtx", stream, ctypes.byref(context)) == 0
    assert context.value == table.context
    assert table("cuStreamGetCtx", None, ctypes.byref(context)) == 0
    assert table.launch(table.kernel(library, "nothing"), stream=stream) == 0
    assert table("cuStreamDestroy", stream) == 0
    for call in ("cuStreamDestroy", "cuStreamSynchronize"):
        assert table(call, stream) == INVALID_HANDLE
    assert table.launch(table.kernel(library, "nothing"), stream=stream) == INVALID_HANDLE
    assert table("cuStreamCreateWithPriority", ctypes.byref(HANDLE()), 8, 0) == INVALID_VALUE


def test_the_capture_mode_is_exchanged(table):
    mode = INT(2)
    assert table("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode)) == 0
    assert mode.value == 0
    assert table("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode)) == 0
    assert mode.value == 2


# ---- modules and kernels


def test_kernels_of_a_library(table, library):
    assert table.out("cuLibraryGetKernelCount", ctypes.c_uint, library) == 3
    found = (HANDLE * 3)()
    assert table("cuLibraryEnumerateKernels", found, 3, library) == 0
    names = []
    for kernel in found:
        text = table.out("cuKernelGetName", HANDLE, kernel)
        names.append(ctypes.string_at(text).decode())
    assert names == ["add", "nothing", "stop"]
    assert found[0] == table.kernel(library, "add")
    assert table.out("cuKernelGetFunction", HANDLE, found[0]) == found[0]
    assert table("cuFuncLoad", found[0]) == 0
    missing = ("cuLibraryGetKernel", ctypes.byref(HANDLE()), library, b"no")
    assert table(*missing) == NOT_FOUND


def test_handles_of_an_unloaded_library_are_none(table, library):
    kernel = table.kernel(library, "nothing")
    other = table.load()
    assert table("cuLibraryUnload", library) == 0
    assert table("cuLibraryUnload", library) == INVALID_HANDLE
    assert table.launch(kernel) == INVALID_HANDLE
    assert table("cuFuncLoad", kernel) == INVALID_HANDLE
    assert table("cuLibraryGetKernelCount", ctypes.byref(ctypes.c_uint()), 5) == INVALID_HANDLE
    assert table.launch(table.kernel(other, "nothing")) == 0


def test_parameters(table, library):
    kernel = table.kernel(library, "add")
    offset, size = SIZE(), SIZE()
    found = []
    for index in range(2):
        code = table(
            "cuKernelGetParamInfo", kernel, index, ctypes.byref(offset), ctypes.byref(size)
        )
        found.append((code, offset.value, size.value))
    assert found == [(0, 0, 8), (0, 8, 4)]
    past = ("cuKernelGetParamInfo", kernel, 2, ctypes.byref(offset), ctypes.byref(size))
    assert table(*past) == INVALID_VALUE


def test_attributes_of_a_kernel(table, library):
    kernel = table.kernel(library, "add")

    def attribute(number):
        return table.out("cuKernelGetAttribute", INT, number, kernel, 0)

    assert [attribute(n) for n in (0, 1, 5, 6)] == [128, 64, 80, 80]
    assert attribute(8) == 48 * 1024 - 64
    assert table("cuKernelSetAttribute", 8, 100_000, kernel, 0) == 0
    assert attribute(8) == 100_000
    assert table("cuKernelSetAttribute", 8, 200_000, kernel, 0) == INVALID_VALUE
    assert table("cuKernelSetAttribute", 8, -1, kernel, 0) == INVALID_VALUE
    assert table("cuKernelSetAttribute", 0, 5, kernel, 0) == INVALID_VALUE
    assert table("cuKernelGetAttribute", ctypes.byref(INT()), 99, kernel, 0) == INVALID_VALUE


def test_variables(table, library):
    address, size = ADDRESS(), SIZE()

    def find(name):
        arguments = (ctypes.byref(address), ctypes.byref(size), library, name)
        return table("cuLibraryGetGlobal", *arguments)

    assert find(b"total") == 0
    assert size.value == 4
    word = ctypes.c_uint()
    copy = (ctypes.addressof(word), address.value, 4, None)
    assert table("cuMemcpyDtoHAsync", *copy) == 0
    assert word.value == 7
    word.value = 9
    assert table("cuMemcpyHtoDAsync", address.value, ctypes.addressof(word), 4, None) == 0
    assert ctypes.c_uint.from_address(address.value).value == 9
    assert find(b"missing") == NOT_FOUND


@pytest.mark.parametrize("image", [b"", b"x", b"hello", b"\x00\x01\x02\x03", b"// no PTX\n"])
def test_what_is_no_image(table, image):
    assert table.load_code(image)[0] == 200


def test_ptx_that_does_not_parse(table):
    code, _ = table.load_code(ADD.replace("ret; }", "ret;").encode())
    assert code == 218
    assert "PTX line" in table.text(218)
    assert table("cuLibraryLoadData", ctypes.byref(HANDLE()), None, *[None] * 2, 0, None, None, 0)


def test_machine_code_only(table):
    code, _ = table.load_code(b"\x7fELF" + bytes(60))
    assert code == 209
    assert "compile with PTX" in table.text(209)


@pytest.mark.parametrize(
    ("target", "arch", "code"),
    [
        ("sm_80", "sm_80", 0),
        ("sm_75", "sm_80", 0),
        ("sm_86", "sm_80", 209),
        ("sm_90", "sm_90", 0),
        ("sm_90a", "sm_90", 0),
        ("sm_90a", "sm_100", 209),
        ("sm_100f", "sm_103", 0),
        ("sm_100f", "sm_120", 209),
    ],
)
def test_the_architecture_of_ptx(target, arch, code):
    table = Table(arch)
    assert table.load_code(ADD.replace("sm_80", target).encode())[0] == code
    if code:
        assert f"{target}, and the emulated device is {arch}" in table.text(code)


# ---- occupancy


def test_occupancy(table, library):
    kernel = table.kernel(library, "add")

    def blocks(threads, shared=0):
        name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        return table.out(name, INT, kernel, threads, shared)

    assert [blocks(n) for n in (32, 64, 128, 129)] == [32, 32, 16, 0]
    assert blocks(32, 60_000) == 2
    grid, block = INT(), INT()
    where = (ctypes.byref(grid), ctypes.byref(block))
    assert table("cuOccupancyMaxPotentialBlockSize", *where, kernel, None, 0, 0) == 0
    assert (grid.value, block.value) == (16 * 16, 128)
    assert table("cuOccupancyMaxPotentialBlockSize", *where, kernel, None, 0, 64) == 0
    assert block.value == 64
    size_of = ctypes.CFUNCTYPE(SIZE, INT)(lambda threads: 0 if threads < 64 else 1 << 20)
    pointer = ctypes.cast(size_of, ctypes.c_void_p)
    assert table("cuOccupancyMaxPotentialBlockSize", *where, kernel, pointer, 0, 0) == 0
    assert block.value == 32


# ---- memory


def test_memory(table):
    address = table.out("cuMemAlloc", ADDRESS, 100)
    assert address % 256 == 0
    assert table("cuMemsetD8Async", address, 0xAB, 100, None) == 0
    assert ctypes.string_at(address, 100) == b"\xab" * 100
    ordinal = INT(7)
    assert table("cuPointerGetAttribute", ctypes.addressof(ordinal), 9, address + 99) == 0
    assert ordinal.value == 0
    wrong = ("cuPointerGetAttribute", ctypes.addressof(ordinal), 9, 64)
    assert table(*wrong) == INVALID_VALUE
    assert table("cuMemFree", address) == 0
    assert table("cuMemFree", address) == INVALID_VALUE
    assert table("cuMemFree", 0) == 0


def test_memory_in_a_stream(table):
    stream = table.out("cuStreamCreateWithPriority", HANDLE, 0, 0)
    address = table.out("cuMemAllocAsync", ADDRESS, 8, stream)
    assert table("cuMemFreeAsync", address, stream) == 0
    assert table("cuMemAllocAsync", ctypes.byref(ADDRESS()), 8, 0x99) == INVALID_HANDLE


def test_copies_stay_within_allocations(table):
    address = table.out("cuMemAlloc", ADDRESS, 16)
    source = np.arange(32, dtype=np.uint8)
    copy = "cuMemcpyHtoDAsync"
    assert table(copy, address, source.ctypes.data, 16, None) == 0
    assert table(copy, address, source.ctypes.data, 17, None) == INVALID_VALUE
    assert table(copy, address + 8, source.ctypes.data, 9, None) == INVALID_VALUE
    assert "17 bytes" not in table.text(INVALID_VALUE)
    assert "9 bytes at" in table.text(INVALID_VALUE)
    assert table("cuMemsetD8Async", 4096, 0, 1, None) == INVALID_VALUE


@pytest.mark.parametrize("size", [1 << 50, 1 << 62, (1 << 64) - 1])
def test_more_memory_than_there_is(table, size):
    assert table("cuMemAlloc", ctypes.byref(ADDRESS()), size) == NO_MEMORY
    assert table("cuMemAlloc", ctypes.byref(ADDRESS()), 0) == INVALID_VALUE


# ---- threads


def test_many_threads(table, library):
    kernel = table.kernel(library, "add")
    failures = []

    def work(value):
        table("cuCtxPushCurrent", table.context)
        address = table.out("cuMemAlloc", ADDRESS, 128)
        words = np.zeros(32, np.uint32)
        for _ in range(10):
            code = table.launch(kernel, ADDRESS(address), ctypes.c_uint(value), block=(32, 1, 1))
            table("cuMemcpyDtoHAsync", words.ctypes.data, address, 128, None)
            if code or set(words.tolist()) != {value}:
                failures.append((value, code, words))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_launch_does_not_look_at_every_variable_of_its_module():
    declared = "".join(f".global .u32 v{i} = {i};\n" for i in range(3000))
    body = ".reg .b32 r; .reg .b64 at; mov.u64 at, v2999; ld.global.u32 r, [at];"
    text = f".version 8.0\n.target sm_80\n.address_size 64\n{declared}.entry k() {{ {body} ret; }}"
    device = Device()
    instance = device.load(PtxImage(text))
    device.launch(instance, "k", b"", (1,), (1,))
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += 1
        return count

    sys.settrace(count)  # each line of Python that runs
    try:
        device.launch(instance, "k", b"", (1,), (1,))
    finally:
        sys.settrace(None)
    assert calls < 2000
