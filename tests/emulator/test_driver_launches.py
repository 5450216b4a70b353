"""Launches, the arrays of a launch, and faults, as C code sees them in the emulated driver."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest
from emulator_internals import NOTE_ARRAY, NOTE_FUNCTION, NOTE_LAUNCH, Result

INT, SIZE, HANDLE, ADDRESS = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_ulonglong
INVALID_VALUE, NO_MEMORY = Result.INVALID_VALUE, Result.OUT_OF_MEMORY
INVALID_CONTEXT, INVALID_HANDLE = Result.INVALID_CONTEXT, Result.INVALID_HANDLE
NOT_FOUND = Result.NOT_FOUND


def test_a_launch(table, library):
    address = table.out("cuMemAlloc", ADDRESS, 40)
    kernel = table.kernel(library, "add")
    value = ctypes.c_uint(5)
    assert table.launch(kernel, ADDRESS(address), value, block=(10, 1, 1)) == 0
    words = np.zeros(10, np.uint32)
    assert table("cuMemcpyDtoHAsync", words.ctypes.data, address, 40, None) == 0
    assert words.tolist() == [5] * 10


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"block": (129, 1, 1)}, INVALID_VALUE),
        ({"block": (0, 1, 1)}, INVALID_VALUE),
        ({"grid": (1, 65536, 1)}, INVALID_VALUE),
        ({"shared": 50_000}, INVALID_VALUE),
        ({"attributes": ((4, b"\2\0\0\0\1\0\0\0\1\0\0\0"),), "grid": (2, 1, 1)}, 801),
        ({"attributes": ((2, b"\1\0\0\0"),), "grid": (100_000, 1, 1)}, 720),
    ],
)
def test_a_launch_that_is_refused(table, library, how, code):
    kernel = table.kernel(library, "add")
    arguments = (ADDRESS(0), ctypes.c_uint(1))
    assert table.launch(kernel, *arguments, **how) == code
    assert "add" in table.text(code)
    assert table.launch(table.kernel(library, "nothing")) == 0


def test_missing_arguments(table, library):
    kernel = table.kernel(library, "add")
    assert table.launch(kernel) == INVALID_VALUE
    assert "pointer to argument 0 is null" in table.text(INVALID_VALUE)
    assert table.launch(0x7777) == INVALID_HANDLE


def test_null_pointers_for_results(table, library):
    assert table("cuDeviceGetCount", None) == INVALID_VALUE
    assert "null pointer" in table.text(INVALID_VALUE)
    assert table("cuLibraryGetKernel", None, library, b"add") == INVALID_VALUE


# ---- arrays that are reported to the driver


def test_only_noted_arrays_are_known(table, library):
    kernel = table.kernel(library, "add")
    # The middle of large memory, whose start may lie directly beside memory that is known.
    x = np.zeros(1 << 18, np.uint32)[1 << 17 :]
    arguments = (ADDRESS(x.ctypes.data), ctypes.c_uint(3))
    note = table.functions["note_array"]
    note(None, 0, NOTE_LAUNCH)
    note(x.ctypes.data, x.nbytes, NOTE_ARRAY)
    assert table.launch(kernel, *arguments, block=(4, 1, 1)) == 0
    assert x[:5].tolist() == [3, 3, 3, 3, 0]
    # The list was for one launch.
    assert table.launch(kernel, *arguments, block=(4, 1, 1)) == 700
    text = table.text(700)
    assert "outside every allocation" in text
    assert "the emulator knows only the arrays among the launch's arguments" in text


def test_a_new_call_forgets_the_arrays_of_one_that_failed(table, library):
    kernel = table.kernel(library, "add")
    x = np.zeros(4, np.uint32)
    note = table.functions["note_array"]
    note(x.ctypes.data, x.nbytes, NOTE_ARRAY)  # a call that then failed
    note(None, 0, NOTE_LAUNCH)
    assert table.launch(kernel, ADDRESS(x.ctypes.data), ctypes.c_uint(3)) == 700


def test_arrays_of_a_function_stay_until_it_ends(table, library):
    kernel = table.kernel(library, "add")
    x = np.zeros(4, np.uint32)
    arguments = (ADDRESS(x.ctypes.data), ctypes.c_uint(3))
    note = table.functions["note_array"]
    note(None, 0, NOTE_FUNCTION)
    note(x.ctypes.data, x.nbytes, NOTE_ARRAY)
    assert [table.launch(kernel, *arguments) for _ in range(3)] == [0, 0, 0]
    note(None, 0, NOTE_LAUNCH)
    assert table.launch(kernel, *arguments) == 700


def test_arrays_are_of_a_thread(table, library):
    kernel = table.kernel(library, "add")
    x = np.zeros(4, np.uint32)
    table.functions["note_array"](x.ctypes.data, x.nbytes, NOTE_ARRAY)
    codes = []

    def launch():
        table("cuCtxPushCurrent", table.context)
        codes.append(table.launch(kernel, ADDRESS(x.ctypes.data), ctypes.c_uint(3)))

    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    assert codes == [700]


# ---- faults


def test_a_fault_is_sticky(table, library):
    address = table.out("cuMemAlloc", ADDRESS, 16)
    assert table.launch(table.kernel(library, "stop")) == 719
    text = table.text(719)
    assert text.startswith("unspecified launch failure: ")
    assert "kernel stop" in text
    assert "trap" in text
    memory = np.zeros(4, np.uint32)
    for call in (
        ("cuCtxSynchronize",),
        ("cuStreamSynchronize", None),
        ("cuMemAlloc", ctypes.byref(ADDRESS()), 16),
        ("cuMemsetD8Async", address, 0, 16, None),
        ("cuMemcpyHtoDAsync", address, memory.ctypes.data, 16, None),
        ("cuMemcpyDtoHAsync", memory.ctypes.data, address, 16, None),
        ("cuStreamCreateWithPriority", ctypes.byref(HANDLE()), 0, 0),
        ("cuMemFree", address),
    ):
        assert table(*call) == 719, call
    assert table.launch(table.kernel(library, "nothing")) == 719
    blame = "an earlier launch is to blame, and this call did nothing: "
    assert table.text(719) == text.replace(": ", f": {blame}", 1)
    table.driver.reset()
    assert table.launch(table.kernel(library, "nothing")) == 0
    assert table.text(719) == "unspecified launch failure"
    assert table("cuMemFree", address) == INVALID_VALUE  # it was freed


def test_details_are_of_a_thread(table):
    assert table("cuCtxPushCurrent", 5) == INVALID_CONTEXT
    seen = []
    thread = threading.Thread(target=lambda: seen.append(table.text(INVALID_CONTEXT)))
    thread.start()
    thread.join()
    assert seen == ["invalid device context"]
    assert "0x5 is not a context" in table.text(INVALID_CONTEXT)


def test_a_defect_of_the_emulator_is_an_error(table, library, monkeypatch):
    # The exception is raised in the emulator itself: one of other code would not be its defect.
    monkeypatch.setattr(table.device, "launch", int)
    assert table.launch(table.kernel(library, "nothing")) == 999
    assert "a defect of the emulator, please report it" in table.text(999)
    assert "TypeError" in table.text(999)
