"""Many threads at once: launches, look-ups, loading, unloading; and no wait with the GIL."""

import ctypes
import faulthandler
import sys
import threading

import pytest
from fake_arrays import ExchangeArray

import culaunch as cl

# PyGILState_Check gives 1, CUDA_ERROR_INVALID_VALUE, under the GIL, and 0 without it. It stands
# for any driver function that may block.
GIL_IS_HELD = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value


@pytest.fixture(autouse=True)
def impatient():
    """Switch threads at every chance, and end a deadlock with a traceback of every thread."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    faulthandler.dump_traceback_later(60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    sys.setswitchinterval(before)


def run_threads(work, count=8):
    """Run work(index) in threads that start together; raise what one of them raised."""
    failures, barrier = [], threading.Barrier(count)

    def run(index):
        try:
            barrier.wait()
            work(index)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure


@pytest.mark.slow
@pytest.mark.memory
def test_one_launcher_in_many_threads(driver):
    kernel = driver.kernel(8, 4)
    launcher = kernel[1, 1]

    def work(index):
        for i in range(100):
            launcher(ExchangeArray(device=index % 2), 1000 * index + i)
            kernel[i % 20 + 1, index + 1](None, i)

    run_threads(work)
    assert len(driver.launches) == 8 * 200
    numbers = [
        int.from_bytes(launch.arguments[1], "little")
        for launch in driver.launches
        if launch.arguments[0] != bytes(8)
    ]
    assert sorted(numbers) == sorted(1000 * i + j for i in range(8) for j in range(100))
    for launch in driver.launches:
        if launch.arguments[0] == bytes(8):
            number = int.from_bytes(launch.arguments[1], "little")
            assert launch.grid[0] == number % 20 + 1
        else:
            assert launch.device == int.from_bytes(launch.arguments[1], "little") // 1000 % 2


def test_a_kernel_s_first_launch_in_many_threads(driver):
    for shared in (0, 100_000):
        kernel = driver.kernel(4)

        def work(index, kernel=kernel, shared=shared):
            kernel[1, index + 1, shared](index)

        run_threads(work)
    assert len(driver.launches) == 16


def test_names_are_looked_up_in_many_threads(driver):
    names = [f"kernel_{i}" for i in range(30)]
    module = cl.load(driver.image(dict.fromkeys(names, ((0, 4),))))

    def work(index):
        for name in names[index:] + names[:index]:
            module[name][1, 1](index)
            assert module.kernel(name, signature="int").name == name
        assert len(module.kernels) == 30

    run_threads(work)
    assert len(driver.launches) == 8 * 30


def test_modules_come_and_go_in_many_threads(driver):
    image = driver.image({"k": ((0, 4),)})

    def work(index):
        for i in range(10):
            with cl.load(image) as module:
                module["k"][1, 1](i)

    run_threads(work)
    assert driver.libraries == {}
    assert len(driver.launches) == 80


def test_looking_up_while_another_thread_unloads(driver):
    for _ in range(20):
        module = cl.load(driver.image({f"k{i}": () for i in range(10)}))

        def work(index, module=module):
            if index == 0:
                module.unload()
                return
            for i in range(10):
                try:
                    module[f"k{i}"][1, 1]()
                except (cl.KernelNotFoundError, cl.LaunchError, ValueError) as error:
                    assert "unloaded" in str(error) or "INVALID_HANDLE" in str(error)  # noqa: PT017

        run_threads(work, count=3)
        assert driver.libraries == {}
    driver.defects.clear()  # a handle that went while it was asked about is the driver's KeyError


def test_new_types_in_many_threads(driver):
    kernel = driver.kernel(4)

    def work(index):
        for i in range(100):
            fields = {"_fields_": [("x", ctypes.c_int)]}
            kernel[1, 1](type(f"S{index}_{i}", (ctypes.Structure,), fields)(i))

    run_threads(work, count=4)
    assert len(driver.launches) == 400


def test_a_current_device_is_each_thread_s_own(driver):
    kernel = driver.kernel(4)

    def work(index):
        for _ in range(20):
            with cl.driver.Device(index % 2):
                kernel[1, index + 1](1)
                assert cl.driver.Device().ordinal == index % 2

    run_threads(work)
    for launch in driver.launches:
        assert launch.device == (launch.block[0] - 1) % 2


# ---- the GIL is free while the driver may block


def blocking(install, *functions):
    return install(instead=dict.fromkeys(functions, GIL_IS_HELD))


def test_a_launch(install):
    driver = blocking(install, "cuLaunchKernelEx")
    kernel = driver.kernel(8)
    for _ in range(2):
        kernel[1, 1](ExchangeArray())
        kernel.launch(0, grid=1, block=1, shared_memory=100_000)
        with cl.driver.Device(1):
            kernel[1, 1](None)


def test_making_a_kernel_resident(install):
    driver = blocking(install, "cuFuncLoad")
    driver.kernel(8)[1, 1](None)


def test_loading_and_unloading(install):
    driver = blocking(install, "cuLibraryUnload")
    cl.load(driver.image({})).unload()
    blocking(install, "cuLibraryLoadData")
    cl.load(b".version 8.0\n.target sm_90\n")


def test_waiting(install):
    blocking(install, "cuCtxSynchronize", "cuStreamSynchronize", "cuMemcpyHtoDAsync", "cuMemFree",
             "cuMemcpyDtoHAsync")  # fmt: skip
    cl.synchronize()
    cl.driver.Device(1).synchronize()
    cl.Stream().synchronize()
    cl.to_device([1.0, 2.0]).numpy()
    blocking(install, "cuMemAlloc")
    cl.empty(3, "f4")


def test_a_blocked_launch_lets_other_threads_run(install):
    entered, release = threading.Event(), threading.Event()

    @ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
    def launch(*args):
        entered.set()
        return 0 if release.wait(30) else 999

    driver = install(instead={"cuLaunchKernelEx": ctypes.cast(launch, ctypes.c_void_p).value})
    kernel = driver.kernel(4)
    thread = threading.Thread(target=kernel[1, 1], args=(1,))
    thread.start()
    assert entered.wait(30)
    other = driver.kernel(4)  # loads, looks up and configures meanwhile
    other[1, 1]
    release.set()
    thread.join()
    other[1, 1](2)
