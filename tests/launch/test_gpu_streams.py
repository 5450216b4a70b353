"""Launches on a GPU in the streams of frameworks, of contexts and of devices."""

import ctypes
import threading

import numpy as np
import pytest
from gpu_arrays import KIB, int_array

import culaunch as cl

# Warnings of other frameworks do not matter here.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore", "error:::culaunch")]


@pytest.mark.needs("torch")
def test_the_current_stream_of_torch(gpu):
    import torch

    x, y = torch.zeros(256, device="cuda"), torch.zeros(256, device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)  # long enough for a launch elsewhere to come too early
        x.fill_(2)
        gpu["scale<float>"][1, 256](y, x, 3.0, 256)
    stream.synchronize()
    assert (y == 6).all()


@pytest.mark.needs("cupy")
def test_the_current_stream_of_cupy(gpu):
    import cupy

    x, y = cupy.zeros(256, "f4"), cupy.zeros(256, "f4")
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        gpu["spin"][1, 1, 0, stream](50_000_000)
        x.fill(2)
        gpu["scale<float>"][1, 256](y, x, 3.0, 256)
    stream.synchronize()
    assert (y.get() == 6).all()


def _torch():
    import torch

    return torch.cuda.Stream()


def _cupy():
    import cupy

    return cupy.cuda.Stream(non_blocking=True)


def _numba():
    from numba import cuda

    return cuda.stream()


def _cuda_core():
    from cuda.core import Device

    device = Device()
    device.set_current()
    return device.create_stream()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(cl.Stream, id="culaunch"),
        pytest.param(_torch, id="torch", marks=pytest.mark.needs("torch")),
        pytest.param(_cupy, id="cupy", marks=pytest.mark.needs("cupy")),
        pytest.param(_numba, id="numba", marks=pytest.mark.needs("numba_cuda")),
        pytest.param(_cuda_core, id="cuda.core", marks=pytest.mark.needs("cuda.core")),
    ],
)
def test_a_stream_of_every_framework(gpu, make):
    stream = make()
    value = int_array()
    gpu["spin"][1, 1, 0, stream](10_000_000)
    gpu["add"].launch(value, 1, grid=1, block=1, stream=stream)
    gpu["add"][1, 1, 0, stream](value, 1)
    assert gpu["add"][1, 1, 0, stream].stream is stream
    assert value.numpy(stream)[0] == 2
    with cl.Stream.from_handle(stream) as same:
        start = same.record()
        gpu["add"][1, 1](value, 1)
        assert same.record().elapsed(start) > 0
        assert value.numpy()[0] == 3


def current_context():
    context = ctypes.c_void_p()
    assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.value


def test_a_thread_without_a_context(gpu):
    value, seen = int_array(), []

    def work():
        seen.append(current_context())
        gpu["add"][1, 1](value, 5)
        gpu["add"][1, 1](value.address, 5)
        seen.append(current_context())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [None, None]
    cl.synchronize(0)
    assert value.numpy()[0] == 10


@pytest.mark.needs("torch")
def test_a_stream_says_its_context(gpu):
    """Whatever is current, under capture too; what is current stays."""
    import torch

    libcuda = ctypes.CDLL("libcuda.so.1")
    own = ctypes.c_void_p()
    value = torch.zeros(1, dtype=torch.int32, device="cuda")
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()  # the stream does not wait for the zero
    launcher = gpu["add"][1, 1, 0, stream]
    launcher(value, 1)
    assert libcuda.cuCtxCreate_v2(ctypes.byref(own), 0, 0) == 0
    try:
        for _ in range(2):
            launcher(value, 1)
        assert current_context() == own.value
        assert libcuda.cuCtxPopCurrent_v2(ctypes.byref(own)) == 0
        with torch.cuda.graph(graph, stream=stream):
            assert libcuda.cuCtxPushCurrent_v2(own) == 0
            launcher(value, 10)
            assert current_context() == own.value
            assert libcuda.cuCtxPopCurrent_v2(ctypes.byref(own)) == 0
        graph.replay()
        torch.cuda.synchronize()
        assert value.item() == 13
    finally:
        assert libcuda.cuCtxDestroy_v2(own) == 0


def test_the_default_stream_is_of_the_current_context(gpu):
    """A launch by guess, with a function of the primary context, is refused in another one."""
    libcuda = ctypes.CDLL("libcuda.so.1")
    own, address = ctypes.c_void_p(), ctypes.c_uint64()
    stream, read = ctypes.c_void_p(), ctypes.c_int32()
    for _ in range(3):
        counter = int_array()
        gpu["add"][1, 1](counter.address, 1)  # in the primary context, by an address alone
    assert libcuda.cuCtxCreate_v2(ctypes.byref(own), 0, 0) == 0
    try:
        # Memory of this context only: a launch in another one would be an illegal access.
        assert libcuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4)) == 0
        assert libcuda.cuMemsetD32_v2(address, 0, ctypes.c_size_t(1)) == 0
        assert libcuda.cuStreamCreate(ctypes.byref(stream), 0) == 0
        for _ in range(100):
            gpu["add"][1, 1](address.value, 1)
            gpu["add"][1, 1, 0, stream.value](address.value, 1)
            assert libcuda.cuCtxSynchronize() == 0
        assert libcuda.cuMemcpyDtoH_v2(ctypes.byref(read), address, ctypes.c_size_t(4)) == 0
        assert read.value == 200
        assert current_context() == own.value
    finally:
        assert libcuda.cuCtxDestroy_v2(own) == 0


@pytest.mark.multi_gpu
def test_the_default_stream_follows_the_current_device(gpu):
    values = [cl.to_device(np.zeros(1, "i4"), device) for device in (0, 1)]
    for turn in range(200):
        with cl.driver.Device(turn % 2):
            gpu["add"][1, 1](values[turn % 2].address, 1)
    for device, value in enumerate(values):
        cl.synchronize(device)
        assert value.numpy()[0] == 100


@pytest.mark.multi_gpu
@pytest.mark.needs("torch")
def test_a_handle_that_was_of_another_devices_stream(gpu):
    """Destroyed and made again elsewhere, for as long as the driver gives another handle."""
    libcuda = ctypes.CDLL("libcuda.so.1")
    values = [cl.to_device(np.zeros(1, "i4"), device) for device in (0, 1)]
    seen, reused, launches = {}, 0, [0, 0]
    for turn in range(400):
        device = turn % 2
        with cl.driver.Device(device):
            stream = ctypes.c_void_p()
            assert libcuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
            reused += seen.get(stream.value, device) != device
            seen[stream.value] = device
            launches[device] += 1
            gpu["add"][1, 1, 0, stream.value](values[device].address, 1)
            assert libcuda.cuStreamSynchronize(stream) == 0
            assert libcuda.cuStreamDestroy_v2(stream) == 0
    assert [value.numpy()[0] for value in values] == launches
    if not reused:
        pytest.skip("the driver gave no handle to a stream of another device")


@pytest.mark.multi_gpu
@pytest.mark.needs("torch")
def test_a_stream_of_a_device_that_is_not_current(gpu):
    import torch

    value = torch.zeros(1, dtype=torch.int32, device="cuda:1")
    stream, graph = torch.cuda.Stream(1), torch.cuda.CUDAGraph()
    with torch.cuda.device(0):
        launcher = gpu["add"][1, 1, 0, stream]
        for _ in range(3):
            launcher(value, 1)
        assert torch.cuda.current_device() == 0
    torch.cuda.synchronize(1)
    assert value.item() == 3
    with torch.cuda.device(1), torch.cuda.graph(graph, stream=stream), torch.cuda.device(0):
        launcher(value, 10)
    graph.replay()
    torch.cuda.synchronize(1)
    assert value.item() == 13


def test_the_current_context_stays(gpu):
    with cl.driver.Device(0):
        before = current_context()
        assert before
        gpu["add"][1, 1](int_array(), 1)
        assert current_context() == before


@pytest.mark.multi_gpu
@pytest.mark.needs("torch")
def test_a_device_that_is_not_current(gpu):
    import torch

    with torch.cuda.device(0):
        x = torch.arange(256.0, device="cuda:1")
        y = torch.empty_like(x)
        gpu["scale<float>"][1, 256](y, x, 2.0, 256)
        assert torch.cuda.current_device() == 0
        assert torch.equal(y, x * 2)
        other = torch.empty(256, device="cuda:0")
        with pytest.raises(ValueError, match="all arrays of a call must be on one device"):
            gpu["scale<float>"][1, 256](y, other, 2.0, 256)
        with pytest.raises(ValueError, match="but the stream belongs to device 0"):
            gpu["scale<float>"][1, 256, 0, torch.cuda.Stream(0)](y, x, 2.0, 256)
        big = gpu["fill_shared"]
        out = torch.zeros(1, dtype=torch.int64, device="cuda:1").view(torch.uint64)
        big[1, 256, 64 * KIB](out, 16 * KIB)
        assert out.view(torch.int64).item() == 16 * KIB * (16 * KIB - 1) // 2


@pytest.mark.multi_gpu
def test_device_arrays_of_two_devices(gpu):
    for device in cl.driver.devices():
        x = cl.to_device(np.arange(64, dtype="f4"), device.ordinal)
        y = cl.empty(64, "f4", device=device.ordinal)
        gpu["scale<float>"][1, 64](y, x, 2.0, 64)
        np.testing.assert_array_equal(y.numpy(), 2 * np.arange(64, dtype="f4"))
