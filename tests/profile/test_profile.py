"""The launches that a profile lists, on drivers that check every call."""

import threading

import numpy as np
import pytest
from profiled_kernels import add_kernel

import culaunch as cl


class Sized:
    """An array of so many bytes in the first device's memory."""

    def __init__(self, nbytes):
        self.nbytes = nbytes
        self.__cuda_array_interface__ = {
            "shape": (nbytes,), "typestr": "|u1", "data": (0x7000, False), "version": 3,
        }  # fmt: skip


EVENTS = {"cuEventCreate", "cuEventRecord", "cuEventElapsedTime", "cuEventQuery"}


def called(driver):
    return [name for name, _ in driver.calls]


def test_the_times_are_those_of_events_around_the_launch(driver):
    kernel = driver.kernel(4, name="_Z3addi")
    driver.elapsed = [0.5, 0.0, 0.75, 2.0]  # time and begin of each launch
    with cl.profile.launches() as profile:
        kernel[(2, 3), 64, 128](1)
        kernel[(2, 3), 64, 128](2)
    first, second = profile.launches
    assert (first.name, first.mangled) == ("add(int)", "_Z3addi")
    assert (first.grid, first.block, first.shared_memory) == ((2, 3, 1), (64, 1, 1), 128)
    assert (first.state, first.device, first.stream) == ("timed", 0, 0)
    assert (first.device_time, second.device_time) == (0.5, 0.75)
    assert second.device_begin - first.device_begin == pytest.approx(2.0)
    assert first.begin == 0
    assert 0 < first.host_time <= second.begin
    assert [one.device_begin >= one.begin for one in profile.launches] == [True, True]
    (row,) = profile.kernels
    assert (row.calls, row.device_times, row.device_time) == (2, (0.5, 0.75), 0.625)
    assert row.total_time == 1.25


def test_off_a_launch_makes_the_calls_that_it_made_before(driver):
    kernel = driver.kernel(4)
    launcher = kernel[1, 32]
    with cl.driver.Device(0):
        launcher(1)
        driver.calls.clear()
        launcher(1)
        before = called(driver)
        with cl.profile.launches():
            driver.calls.clear()
            launcher(1)
            assert EVENTS & set(called(driver))
        driver.calls.clear()
        launcher(1)
        assert called(driver) == before == ["cuLaunchKernelEx"]
    assert driver.events == {}  # all were destroyed


def test_events_are_in_the_context_of_the_stream(driver):
    kernel, stream = driver.kernel(4), driver.make_stream(1)
    own = driver.make_context(1)
    with cl.profile.launches() as profile:
        kernel[1, 32, 0, stream](1)
        driver.stack.append(own)
        kernel[1, 32](2)
        driver.stack.pop()
    assert [(one.device, one.state) for one in profile.launches] == [(1, "timed"), (1, "timed")]
    assert profile.launches[0].stream == stream


def test_a_destroyed_stream_and_a_destroyed_context(driver):
    kernel, stream = driver.kernel(4), cl.Stream(0)
    own = driver.make_context(0)
    with cl.profile.launches() as profile:
        kernel[1, 32, 0, stream](1)
        driver.streams.pop(stream.handle)
        driver.stack.append(own)
        kernel[1, 32](2)
        driver.destroy_context(own)
    assert [one.state for one in profile.launches] == ["timed", "lost"]
    assert "709" in profile.launches[1].error or "DESTROYED" in profile.launches[1].error
    assert "1 lost, because the device failed" in str(profile)


def test_a_device_that_is_lost(driver):
    kernel = driver.kernel(4)
    with cl.profile.launches() as profile:
        kernel[1, 32](1)
        driver.fail("cuEventQuery", 700)
    (launch,) = profile.launches
    assert (launch.state, launch.device_time) == ("lost", None)
    assert "700" in launch.error
    assert profile.kernels[0].device_time is None
    assert "700" in str(profile)


def test_a_launch_that_the_driver_refuses(driver):
    kernel = driver.kernel(4)
    with cl.profile.launches() as profile:
        kernel[1, 32](1)
        with pytest.raises(cl.LaunchError):
            kernel[1, 2048](1)
    assert [one.state for one in profile.launches] == ["timed", "refused"]
    assert [row.calls for row in profile.kernels] == [1, 0]
    assert "1 refused by the driver" in str(profile)


def test_a_driver_without_events(driver):
    kernel = driver.kernel(4)
    with cl.profile.launches() as profile:
        driver.fail("cuEventCreate", *[2] * 9)
        kernel[1, 32](1)
    assert profile.launches[0].state == "untimed"
    assert "1 not timed" in str(profile)


def test_blocks_may_be_nested_and_raise(driver):
    kernel = driver.kernel(4)
    with cl.profile.launches() as outer:
        kernel[1, 32](1)
        with pytest.raises(cl.LaunchError), cl.profile.launches() as inner:
            kernel[1, (64, 64)](1)
        kernel[1, 96](1)
    assert [one.state for one in inner.launches] == ["refused"]
    assert [one.block[0] for one in outer.launches] == [32, 64, 96]


def test_a_profile_is_read_after_its_block(driver):
    with cl.profile.launches() as profile:
        for read in (str, repr, lambda one: one.launches, lambda one: one.to_json()):
            if read is repr:
                assert repr(profile) == "<culaunch.profile.Profile, not complete>"
            else:
                with pytest.raises(RuntimeError, match="not complete: read it after"):
                    read(profile)
    assert str(profile) == "0 launches"
    assert profile.kernels == ()


@pytest.mark.parametrize(("limit", "error"), [(0, ValueError), (-1, ValueError), ("2", TypeError)])
def test_the_limit_is_checked(driver, limit, error):
    with pytest.raises(error, match="limit"), cl.profile.launches(limit=limit):
        pass


def test_past_the_limit_launches_are_only_counted(driver):
    kernel = driver.kernel(4)
    with cl.profile.launches(limit=2) as profile:
        for i in range(5):
            kernel[1, 32](i)
    assert (len(profile.launches), profile.omitted) == (2, 3)
    assert "launches past the limit, counted but not shown: 3" in str(profile)
    assert len(driver.launches) == 5


def test_more_launches_than_events_are_kept(driver):
    kernel = driver.kernel(4)
    with cl.profile.launches() as profile:
        for i in range(4500):
            kernel[1, 32](i)
        assert len(driver.events) < 2 * 4500
    assert [one.state for one in profile.launches] == ["timed"] * 4500
    assert driver.events == {}


def test_threads_have_their_names(emulated, array):
    kernel = add_kernel()

    def work():
        for _ in range(20):
            kernel[1, 1](array, 1)

    threads = [threading.Thread(target=work, name=f"worker {i}") for i in range(3)]
    with cl.profile.launches() as profile:
        for one in threads:
            one.start()
        kernel[1, 1](array, 1)
        for one in threads:
            one.join()
    assert array[0] == 61
    names = [one.thread for one in profile.launches]
    assert len(names) == 61
    assert names.count("MainThread") == 1


def test_the_bytes_of_arguments(emulated, array):
    kernel, unknown = add_kernel(), add_kernel("other", signature=None)
    device_array = cl.zeros(4, "i4")
    with cl.profile.launches() as profile:
        kernel[1, 1](array, 1)
        kernel[1, 2](array[:4], 1)
        unknown[1, 1](array, 1)
        kernel[1, 3](device_array.address, 1)  # an address: its size is not known
    assert [one.argument_bytes for one in profile.launches] == [4096, 16, 4096, None]
    assert [row.bandwidth for row in profile.kernels] == [None] * 4


def test_the_bandwidth_is_that_of_the_launches_whose_bytes_are_known(known):
    kernel = known.kernel(8)
    known.elapsed = [0.5, 0.0, 0.25, 0.0, 9.0, 0.0]
    with cl.profile.launches() as profile:
        kernel[1, 32](Sized(1000))
        kernel[1, 32](Sized(1000))
        kernel[1, 32](0x7000)
    (row,) = profile.kernels
    assert (row.argument_bytes, row.calls) == (1000, 3)
    assert row.bandwidth == pytest.approx((1000 / 0.5e-3 + 1000 / 0.25e-3) / 2)
    assert row.bandwidth_fraction == pytest.approx(row.bandwidth / (2 * 2619e6 * 5120 / 8))


def test_emulated_times_are_not_those_of_a_device(emulated, array):
    kernel = add_kernel()
    with cl.profile.launches() as profile:
        kernel[1, 1](array, 1)
    (launch,), (row,) = profile.launches, profile.kernels
    assert profile.is_emulated
    assert (launch.state, launch.device_time, launch.device_begin) == ("untimed", None, None)
    assert (row.device_time, row.registers, row.occupancy) == (None, None, None)
    assert "emulated: the times of a device, registers and occupancy are not known" in str(profile)


def test_a_graph_is_one_launch_with_its_kernels(emulated, array):
    kernel = add_kernel()
    with cl.Graph() as graph:
        kernel[1, 1](array, 1)
        kernel[1, 1](array, 2)
    with cl.profile.launches() as profile:
        graph.launch()
    assert array[0] == 3
    (row,) = profile.kernels
    assert (row.name, row.calls) == ("graph of add", 1)


def test_functions_are_listed_by_their_kernels(emulated, array):
    add = add_kernel()

    @cl.function
    def twice(y):
        add[1, 1](y, 1)
        add[1, 2](y, 2)

    twice(array)
    with cl.profile.launches() as profile:
        twice(array)
    assert [(one.name, one.block[0]) for one in profile.launches] == [("add", 1), ("add", 2)]


def test_the_bytes_of_a_functions_kernels(emulated, array):
    add = add_kernel()

    @cl.function
    def several(y):
        add[1, 1](y, 1)
        half = cl.empty(y.shape[0] // 2, "int32")
        add[1, 2](half, 1)
        add[1, 3](y[8:24], 1)

    several(array)
    with cl.profile.launches() as profile:
        several(array)
    # An argument and an array that it makes; the size of a view is not known.
    assert [one.argument_bytes for one in profile.launches] == [4096, 2048, None]


@pytest.mark.needs("triton", "torch")
def test_the_bytes_of_triton_kernels(emulated):
    torch = pytest.importorskip("torch")
    from profiled_triton_kernel import add_up

    x, y = torch.arange(100.0), torch.ones(100)
    out = torch.zeros(100)
    native = cl.triton.native(add_up)
    native[(1,)](x, y, out, 100, BLOCK=128)
    with cl.profile.launches() as profile:
        native[(1,)](x, y, out, 100, BLOCK=128)
        native[(1,)](x, x, out=out, n=100, BLOCK=128)
    assert torch.equal(out, 2 * x)
    # Each array counts once.
    assert [one.argument_bytes for one in profile.launches] == [1200, 800]


def test_under_capture_nothing_is_timed(driver):
    kernel, stream = driver.kernel(4), driver.make_stream()
    kernel[1, 32, 0, stream](1)
    driver.capturing.add(stream)
    with cl.profile.launches() as profile:
        kernel[1, 32, 0, stream](1)
        assert driver.count("cuEventRecord") == 0
    (launch,) = profile.launches
    assert (launch.state, launch.device_time) == ("captured", None)
    assert "1 captured into a graph, which ran nothing" in str(profile)


@pytest.mark.gpu
def test_a_gpu_agrees_with_the_benchmark():
    source = """extern "C" __global__ void add(float* z, const float* x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) z[i] = x[i] + 1;
    }"""
    n = 1 << 26
    kernel = cl.load(cl.compile(source, arch="native"))["add"]
    x, z = cl.zeros(n), cl.zeros(n)
    add = kernel[n // 256, 256]
    timing = cl.profile.benchmark(add, z, x, n, repeat=20)
    with cl.profile.launches() as profile:
        for _ in range(20):
            add(z, x, n)
    (row,) = profile.kernels
    assert row.device_time == pytest.approx(timing.median, rel=0.1)
    assert row.argument_bytes == 8 * n
    assert 0.3 < row.bandwidth_fraction < 1.1
    assert row.limited_by == ("threads",)
    assert row.occupancy == 1
    assert np.diff([one.device_begin for one in profile.launches]).min() > 0
