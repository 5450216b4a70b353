"""Events, and what streams do besides running kernels."""

import gc
import threading
import types

import pytest

import culaunch as cl
from culaunch import _core

KERNEL = """
extern "C" __global__ void add(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
"""


@pytest.fixture(scope="module")
def image():
    return cl.compile(KERNEL, arch="compute_80")


# ---- on both drivers


def test_the_time_between_two_events(image, culaunch_driver):
    stream, array = cl.Stream(), cl.zeros(1000)
    launcher = cl.load(image)["add"][4, 256, 0, stream]
    start = stream.record()
    launcher(array, 1000)
    end = cl.Event().record(stream)
    assert 0 < end.elapsed(start) < 60_000
    assert end.query()
    assert stream.query()
    assert start.elapsed(start) == 0


def test_streams_wait_for_each_other(image, culaunch_driver):
    add, array = cl.load(image)["add"], cl.zeros(1 << 16)
    cl.synchronize()  # the zeros are in the default stream, for which these do not wait
    first, second = cl.Stream(), cl.Stream(priority=-1)
    for _ in range(20):
        add[256, 256, 0, first](array, 1 << 16)
        second.wait(first)
        add[256, 256, 0, second](array, 1 << 16)
        first.wait(second.record(cl.Event(timing=False)))
    assert (array.numpy(first) == 40).all()


def test_the_stream_of_a_block(image, culaunch_driver):
    add, stream = cl.load(image)["add"], cl.Stream()
    with stream as entered:
        assert entered is stream
        array = cl.zeros(1000)
        add[4, 256](array, 1000)
        with cl.Stream() as inner:
            inner.wait(stream)
            add[4, 256](array, 1000)
        add[4, 256](array, 1000)
        assert (array.numpy() == 3).all()
        add[4, 256](array, 1000)
    assert (array.numpy() == 4).all()  # the default stream has waited


def test_priorities(culaunch_driver):
    least, most = cl.Stream.priorities()
    assert most <= 0 <= least
    for priority in (least, most):
        assert cl.Stream(priority=priority).priority == priority
    with pytest.raises(ValueError, match=r"priority must be from -\d+ \(the most urgent\) to 0"):
        cl.Stream(priority=most - 1)


@pytest.mark.slow
def test_a_stream_of_another_library(culaunch_driver):
    own = cl.Stream()
    same = cl.Stream.from_handle(types.SimpleNamespace(cuda_stream=own.handle))
    assert same == own
    assert hash(same) == hash(own)
    assert same.priority is None
    same.synchronize()
    del same
    gc.collect()
    own.synchronize()  # it was not destroyed with what stood for it
    assert cl.Stream.from_handle(0).query()
    with pytest.raises(TypeError, match="stream must be"):
        cl.Stream.from_handle(None)


def test_events_without_a_time(culaunch_driver):
    stream = cl.Stream()
    start, never = stream.record(), cl.Event()
    untimed = stream.record(cl.Event(timing=False))
    with pytest.raises(ValueError, match="the event must be made with timing=True"):
        untimed.elapsed(start)
    with pytest.raises(ValueError, match="since must be made with timing=True"):
        start.elapsed(untimed)
    with pytest.raises(ValueError, match="since must be recorded before"):
        start.elapsed(never)
    with pytest.raises(TypeError, match=r"since must be a culaunch\.Event"):
        start.elapsed(1.0)
    with pytest.raises(TypeError, match=r"event must be a culaunch\.Event"):
        stream.record(1)
    with pytest.raises(TypeError, match="timing must be True or False"):
        cl.Event(timing=1)
    assert never.query()


# ---- what the driver is asked


def test_calls_of_a_block_go_to_its_stream(driver):
    stream, kernel = cl.Stream(1), driver.kernel(8)
    there, here = cl.empty(3, device=1), cl.empty(3, device=0)
    with stream:
        kernel[1, 1](there)
        assert driver.last.stream == stream.handle
        kernel[1, 1](here)  # of another device
        assert driver.last.stream == 0
        kernel[1, 1, 0, 0](there)  # a stream that is given is the one
        assert driver.last.stream == 0
        there.numpy()
        copied = [args[3] for name, args in driver.calls if name == "cuMemcpyDtoHAsync"]
        assert copied == [stream.handle]
        other = threading.Thread(target=kernel[1, 1], args=(there,))
        other.start()
        other.join()
        assert driver.last.stream == 0
    kernel[1, 1](there)
    assert driver.last.stream == 0
    waits = [args[0] for name, args in driver.calls if name == "cuStreamWaitEvent"]
    assert waits == [None]  # the null stream
    assert driver.events == {}
    assert driver.stack == []


def test_a_block_that_raises_waits_for_nothing(driver):
    with pytest.raises(KeyError), cl.Stream() as stream:
        raise KeyError
    assert driver.count("cuStreamWaitEvent") == 0
    assert _core.current_stream(0) == 0
    assert stream.query()


def test_what_is_not_done(driver):
    stream = cl.Stream()
    event = stream.record()
    driver.not_ready |= {event.handle, stream.handle}
    assert not event.query()
    assert not stream.query()
    event.synchronize()
    assert event.query()
    driver.fail("cuStreamQuery", 700)
    with pytest.raises(cl.DriverError, match="asking whether the stream is done failed: CUDA_E"):
        stream.query()


@pytest.mark.slow
def test_events_belong_to_a_device(driver):
    first, second = cl.Stream(0), cl.Stream(1)
    assert second.record().device == 1
    with pytest.raises(cl.DriverError, match="recording the event failed"):
        second.record(cl.Event(0))
    start, end = first.record(), second.record()
    with pytest.raises(
        ValueError,
        match=r"must be on one device to measure .* \(got devices 0 and 1",
    ):
        end.elapsed(start)
    second.wait(first)
    assert cl.Stream.from_handle(0, device=1).device == 1
    with pytest.raises(ValueError, match="stream must be of device 1"):
        cl.Stream.from_handle(first, device=1)
    del start, end
    gc.collect()
    assert driver.events == {}


def test_what_an_event_and_a_stream_are_made_with(driver):
    cl.Event()
    cl.Event(timing=False, blocking=True)
    assert [args[1] for name, args in driver.calls if name == "cuEventCreate"] == [0, 3]
    cl.Stream(priority=-2, non_blocking=False)
    made = [args[1:] for name, args in driver.calls if name == "cuStreamCreateWithPriority"]
    assert made == [(0, -2)]


def test_the_numbers_of_the_driver_are_checked(driver):
    core = driver.core
    with pytest.raises(OverflowError):
        core.event_create(0, 1 << 32)
    with pytest.raises(TypeError):
        core.event_create(0)
    with pytest.raises(TypeError):
        core.event_create(0, 1.5)
    with pytest.raises(ValueError, match="40 bytes"):
        core.array_create(0, b"short")
    with pytest.raises(ValueError, match="there is no device 7"):
        core.event_create(7, 0)
    for device in (-1, 64):
        with pytest.raises(ValueError, match="device"):
            _core.set_current_stream(device, 0)
