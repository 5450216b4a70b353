"""Streams: culaunch's own, every framework's, and those of another device."""

import ctypes
import gc
import types

import pytest
from fake_arrays import CudaInterfaceArray, DlpackArray, ExchangeArray

import culaunch as cl


def launched_in(driver, stream):
    driver.kernel()[1, 1, 0, stream]()
    driver.kernel().launch(grid=1, block=1, stream=stream)
    first, second = driver.launches[-2:]
    assert first.stream == second.stream
    return first.stream


# ---- handles


def test_an_int(driver):
    handle = driver.make_stream()
    assert launched_in(driver, handle) == handle
    for default in (0, 1, 2):  # the default stream, the legacy one and the thread's own
        assert launched_in(driver, default) == default


class ByMethod:
    def __init__(self, handle):
        self.pair = (0, handle)

    def __cuda_stream__(self):
        return self.pair


class ByAttribute:
    def __init__(self, handle):
        self.__cuda_stream__ = (0, handle)


class Numba:
    def __init__(self, handle):
        self.handle = ctypes.c_void_p(handle)


@pytest.mark.parametrize(
    "make",
    [
        ByMethod,
        ByAttribute,
        Numba,
        lambda handle: types.SimpleNamespace(cuda_stream=handle),  # PyTorch
        lambda handle: types.SimpleNamespace(ptr=handle),  # CuPy
        lambda handle: types.SimpleNamespace(handle=handle),  # Numba with its own binding
        type("Handle", (int,), {}),
    ],
    ids=["method", "attribute", "numba", "torch", "cupy", "numba-int", "subclass"],
)
def test_a_stream_object(driver, make):
    handle = driver.make_stream()
    assert launched_in(driver, make(handle)) == handle
    assert cl.Stream.from_handle(make(handle)).handle == handle


def test_a_default_stream_of_numba(driver):
    assert launched_in(driver, Numba(None)) == 0


@pytest.mark.parametrize(
    "stream",
    [True, 1.0, "0", b"", object(), [], {}, types.SimpleNamespace(ptr="x"), lambda: 0],
    ids=["bool", "float", "str", "bytes", "object", "list", "dict", "namespace", "function"],
)
def test_what_is_no_stream(driver, stream):
    kernel = driver.kernel()
    for make in (
        lambda: kernel[1, 1, 0, stream],
        lambda: kernel.configure(grid=1, block=1, stream=stream),
        lambda: kernel.launch(grid=1, block=1, stream=stream),
        lambda: cl.empty(1, "f4").numpy(stream),
    ):
        with pytest.raises(TypeError, match="stream must be an int handle"):
            make()


@pytest.mark.parametrize("pair", [None, (), (0,), 5, ("a", "b"), (0, None), (0, 1, 2)])
def test_a_protocol_that_is_not_followed(driver, pair):
    with pytest.raises(TypeError, match="__cuda_stream__"):
        driver.kernel()[1, 1, 0, types.SimpleNamespace(__cuda_stream__=lambda: pair)]


@pytest.mark.parametrize("handle", [-1, 2**64, -(2**70)])
def test_an_int_that_is_no_address(driver, handle):
    with pytest.raises((OverflowError, ValueError)):
        driver.kernel()[1, 1, 0, handle]


def test_a_handle_that_the_driver_does_not_know(driver):
    with pytest.raises(
        cl.DriverError, match=r"device of the stream failed: CUDA_ERROR_INVALID_HAN"
    ):
        driver.kernel()[1, 1, 0, 0xBAD0]


# ---- devices


def test_a_launch_goes_to_the_stream_s_device(driver):
    kernel = driver.kernel(8)
    for device in (0, 1, 0):
        kernel[1, 1, 0, driver.make_stream(device)](None)
        assert (driver.last.device, driver.stack) == (device, [])
    with cl.driver.Device(0):
        kernel[1, 1, 0, driver.make_stream(1)](ExchangeArray(device=1))
        assert driver.last.device == 1


def test_a_stream_of_another_device_is_an_error(driver):
    kernel = driver.kernel(8, 8)
    launcher = kernel[1, 1, 0, driver.make_stream(1)]
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        launcher(None, DlpackArray(device=0))
    assert str(caught.value) == (
        "argument 1 of k, a parameter of 8 bytes, is on device 0 (got fake_arrays.DlpackArray), "
        "but the stream belongs to device 1: pass a stream of device 0"
    )
    driver.memory[0x7000] = (0, None)
    with pytest.raises(ValueError, match="but the stream belongs to device 1"):
        launcher(CudaInterfaceArray(), None)
    launcher(ExchangeArray(device=1), None)
    with pytest.raises(ValueError, match="but earlier arguments are on device 1"):
        launcher(ExchangeArray(device=1), ExchangeArray(device=0))
    assert len(driver.launches) == 1


def test_the_default_stream_is_every_device_s(driver):
    kernel = driver.kernel(8)
    for stream in (0, 1, 2):
        launcher = kernel[1, 1, 0, stream]
        for device in (0, 1):
            launcher(ExchangeArray(device=device))
            assert (driver.last.device, driver.last.stream) == (device, stream)


def test_a_stream_of_a_context_of_the_user_s_own(driver):
    own = driver.make_context(1)
    stream = 0xABC0
    driver.streams[stream] = own
    kernel = driver.kernel(8)
    for _ in range(2):
        kernel[1, 1, 0, stream](ExchangeArray(device=1))
        assert (driver.last.context, driver.stack) == (own, [])
    with cl.driver.Device(1):
        kernel[1, 1, 0, stream](None)
        assert driver.last.context == own


# ---- culaunch's own


def test_a_stream(driver):
    stream = cl.Stream()
    assert (stream.device, stream.handle in driver.streams) == (0, True)
    assert stream.__cuda_stream__() == (0, stream.handle)
    assert repr(stream) == f"<culaunch.Stream {stream.handle:#x} of device 0>"
    assert launched_in(driver, stream) == stream.handle
    stream.synchronize()
    assert driver.calls[-2][0] == "cuStreamSynchronize"
    other = cl.Stream(1, priority=-2)
    assert driver.streams[other.handle] == 0xC0001
    made = [args[1:] for name, args in driver.calls if name == "cuStreamCreateWithPriority"]
    assert made == [(1, 0), (1, -2)]  # CU_STREAM_NON_BLOCKING
    with cl.driver.Device(1):
        assert cl.Stream().device == 1
    assert driver.stack == []


@pytest.mark.slow
@pytest.mark.memory
def test_a_stream_is_destroyed_with_its_last_user(driver):
    stream = cl.Stream()
    handle = stream.handle
    kernel = driver.kernel()
    launcher = kernel[1, 1, 0, stream]
    del stream
    gc.collect()
    launcher()
    assert driver.last.stream == handle
    del launcher
    gc.collect()
    assert handle not in driver.streams


@pytest.mark.slow
def test_a_stream_that_cannot_be_made(driver):
    driver.fail("cuStreamCreateWithPriority", 2)
    with pytest.raises(cl.DriverError, match="creating a stream failed: CUDA_ERROR_OUT_OF_MEMORY"):
        cl.Stream()
    gc.collect()
    with pytest.raises(ValueError, match="there is no device 5"):
        cl.Stream(5)


def test_a_fault_that_synchronize_reports(driver):
    stream = cl.Stream()
    driver.fail("cuStreamSynchronize", 716)
    with pytest.raises(cl.DriverError, match=r"CUDA_ERROR_MISALIGNED_ADDRESS \(716\)"):
        stream.synchronize()
