"""The objects that a launcher keeps alive or not, and that it never blocks the interpreter."""

import ctypes
import gc
import sys
import tracemalloc
import weakref

import numpy as np
import pytest
from driver_tables import MAX_THREADS
from fake_arrays import DlpackArray, ExchangeArray
from memory_growth import least_growth, resident_bytes

import culaunch as cl

GIL_IS_HELD = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value


# ---- what it keeps alive


@pytest.mark.slow
@pytest.mark.memory
def test_a_launcher_keeps_its_kernel_and_module(driver):
    launcher = driver.kernel(4)[1, 1]
    gc.collect()
    launcher(1)
    assert len(driver.launches) == 1


@pytest.mark.slow
@pytest.mark.memory
def test_kernels_and_launchers_are_collected(driver):
    kernel = driver.kernel(4)
    for i in range(20):
        kernel[i + 1, 1](1)
    module = weakref.ref(kernel.module)
    reference = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert reference() is None
    assert module() is None
    assert driver.count("cuLibraryUnload") == 0  # never by the garbage collector


@pytest.mark.slow
@pytest.mark.memory
def test_a_launcher_keeps_its_stream(driver):
    class Owner:
        def __init__(self, handle):
            self.handle = handle

        def __cuda_stream__(self):
            return (0, self.handle)

    owner = Owner(driver.make_stream())
    reference = weakref.ref(owner)
    launcher = driver.kernel()[1, 1, 0, owner]
    assert launcher.stream is owner
    del owner
    gc.collect()
    assert reference() is not None
    launcher()
    del launcher
    gc.collect()
    assert reference() is None


def test_launches_leak_no_references(driver):
    driver.recording = False
    array, slow = ExchangeArray(), DlpackArray()
    number, text, record = 123456789, "no", np.void(b"12345")
    kernel = driver.kernel(8, 8, 4, 5)
    launcher = kernel[1, 1]
    key = (1, (2, 3))
    values = (array, slow, number, text, record, key, launcher, kernel, type(record), type(array))
    launcher(array, slow, number, record)
    kernel[key]
    before = [sys.getrefcount(value) for value in values]
    wrong = ()
    for _ in range(200):
        launcher(array, slow, number, record)
        kernel[1, 1](slow, array, number, record)
        kernel[key]
        kernel.configure(grid=1, block=1)
        for wrong in ((array, slow, text, record), (array,), (record, array, number, number)):
            with pytest.raises((TypeError, ValueError)):
                launcher(*wrong)
    del wrong
    after = [sys.getrefcount(value) for value in values]
    assert after == before


@pytest.mark.slow
@pytest.mark.memory
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs procfs")
def test_many_launches_take_no_memory(install):
    driver = install(instead={"cuLaunchKernelEx": GIL_IS_HELD})
    driver.recording = False
    kernel = driver.kernel(8, 8, 4)
    array = cl.empty(4, "f4")

    def run(count):
        launcher = kernel[1, 1]
        for i in range(count // 2):
            launcher(array, None, i)
            kernel[2, (4, 1)](array, 0, i)

    with cl.driver.Device(0):
        run(2000)
        gc.collect()
        tracemalloc.start()
        try:
            run(500)
            growth = least_growth(run, 2000, lambda: tracemalloc.get_traced_memory()[0], 2000)
        finally:
            tracemalloc.stop()
        assert growth < 2000
        # A sanitizer holds 256 MiB of freed memory back, which takes some ten rounds.
        assert least_growth(run, 200_000, resident_bytes, 1 << 20, rounds=24) < 1 << 20


# ---- the interpreter


@pytest.mark.parametrize("function", ["cuLaunchKernelEx", "cuFuncLoad", "cuLibraryLoadData"])
def test_the_gil_is_released_around_what_can_block(install, function):
    install(instead={function: GIL_IS_HELD})
    if function == "cuLibraryLoadData":
        cl.load(b".version 8.0\n.target sm_90\n")
        return
    driver = install(instead={function: GIL_IS_HELD})
    driver.kernel(8)[1, 1](ExchangeArray())
    driver.kernel(8).launch(ExchangeArray(), grid=1, block=1)


def test_max_threads_is_explained(driver):
    kernel = driver.kernel(name="_Z5scalePfi", attributes={MAX_THREADS: 256, 4: 255})
    with pytest.raises(cl.LaunchError) as caught:
        kernel[(4, 2), (32, 16)]()
    assert str(caught.value) == (
        "cannot launch scale(float*, int) with grid (4, 2, 1), block (32, 16, 1) and 0 bytes of "
        "dynamic shared memory on device 0 (Recorder, sm_90): CUDA_ERROR_INVALID_VALUE (1): text "
        "of 1. the block has 512 threads; this kernel, with 255 registers per thread and its "
        "launch bounds, allows at most 256 on this device: use a smaller block, or compile with "
        "__launch_bounds__"
    )
    assert (caught.value.code, caught.value.name) == (1, "CUDA_ERROR_INVALID_VALUE")
    assert isinstance(caught.value, ValueError)
