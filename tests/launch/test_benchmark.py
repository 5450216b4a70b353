"""Timing calls: the requests to the driver, and the computed times."""

import re
import sys

import numpy as np
import pytest

import culaunch as cl

KERNEL = """
extern "C" __global__ void add(float* z, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] += x[i];
}
"""


@pytest.fixture(scope="module")
def image():
    return cl.compile(KERNEL, arch="compute_80")


def test_a_launcher_is_timed(image, culaunch_driver):
    x, z = cl.to_device(np.ones(1000, "f4")), cl.zeros(1000)
    timing = cl.profile.benchmark(
        cl.load(image)["add"][4, 256], z, x, 1000, repeat=7, warmup=2, bytes=12e3, flops=1e3
    )
    assert (z.numpy() == 9).all()
    assert len(timing.times) == 7
    assert 0 < timing.minimum <= timing.quartiles[0] <= timing.median <= timing.quartiles[1]
    assert timing.bandwidth == pytest.approx(12e3 / timing.median * 1e3)
    text = str(timing)
    assert text.startswith("add on ")
    assert timing.is_emulated == (culaunch_driver == "emulator")
    assert ("wall clock of the emulation on the CPU" in text) == timing.is_emulated
    if not timing.is_emulated:
        assert 0 < timing.bandwidth_fraction < 1.5
        assert 0 < timing.flops_fraction < 1


@pytest.mark.gpu
def test_an_addition_of_large_arrays_comes_near_the_memory_s_limit(image):
    n = 1 << 26
    x, z = cl.zeros(n), cl.zeros(n)
    add = cl.load(image)["add"][n // 256, 256]
    timing = cl.profile.benchmark(add, z, x, n, repeat=20, bytes=12 * n)
    assert timing.is_flushed
    assert 0.3 < timing.bandwidth_fraction < 1.1
    assert timing.roofline_fraction == timing.bandwidth_fraction
    assert "% of the memory's peak" in str(timing)


def test_the_events_are_in_the_stream_of_the_launch(driver):
    kernel, array = driver.kernel(8), cl.empty(4, device=1)
    own, other = cl.Stream(1), cl.Stream(1)
    for launcher, options, wanted in (
        (kernel[1, 1], {}, None),
        (kernel[1, 1, 0, own], {}, own.handle),
        (kernel[1, 1], {"stream": other}, other.handle),
    ):
        driver.calls.clear()
        cl.profile.benchmark(launcher, array, repeat=2, **options)
        recorded = {args[1] for name, args in driver.calls if name == "cuEventRecord"}
        filled = {args[3] for name, args in driver.calls if name == "cuMemsetD8Async"}
        assert recorded == filled == {wanted}
    with own:
        driver.calls.clear()
        cl.profile.benchmark(kernel[1, 1], array, repeat=2)
        assert driver.last.stream == own.handle
        recorded = {args[1] for name, args in driver.calls if name == "cuEventRecord"}
        assert recorded == {own.handle}


def test_the_cache_is_flushed_before_each_run(driver):
    driver.elapsed = [1.0, 3.0, 2.0, 10.0]
    timing = cl.profile.benchmark(lambda: None, repeat=4, warmup=0, bytes=2e9, flops=4e12)
    names = [name for name, _ in driver.calls]
    around = ["cuMemsetD8Async", "cuEventRecord", "cuEventRecord"]
    assert [name for name in names if name in around] == around * 4
    assert timing.times == (1.0, 3.0, 2.0, 10.0)
    assert (timing.median, timing.quartiles, timing.spread) == (2.5, (1.75, 4.75), 1.2)
    assert timing.bandwidth == 0.8e12
    assert timing.peak_bandwidth == 2 * 2619000e3 * 5120 / 8
    assert timing.peak_flops == 2 * 128 * 132 * 1980000e3
    assert timing.roofline_fraction == timing.flops_fraction == 1.6e15 / timing.peak_flops
    assert str(timing).splitlines()[1:4] == [
        "  median 2.5 ms, quartiles 1.75 ms and 4.75 ms, minimum 1 ms; 4 runs, L2 flushed",
        "  800 GB/s, 23.9% of the memory's peak",
        "  1600 TFLOP/s, 2391.3% of the arithmetic's peak",
    ]
    assert "1 ms |####" in str(timing)
    assert timing.to_dict()["median"] == 2.5
    driver.calls.clear()
    unflushed = cl.profile.benchmark(
        lambda: None, repeat=1, flush=False, peak_bandwidth=1e9, bytes=1
    )
    assert driver.count("cuMemsetD8Async") == 0
    assert unflushed.peak_bandwidth == 1e9
    assert "flushed" not in str(unflushed)


@pytest.mark.slow
def test_the_number_of_runs_follows_the_time(driver):
    assert 5 <= len(cl.profile.benchmark(lambda: None).times) <= 1000


def test_a_plot(driver):
    pytest.importorskip("matplotlib")
    driver.elapsed = [1.0, 3.0, 2.0]
    axes = cl.profile.benchmark(lambda: None, repeat=3).plot()
    assert axes.get_xlabel() == "milliseconds"


def test_a_plot_needs_axes_or_matplotlib(driver, monkeypatch):
    timing = cl.profile.benchmark(lambda: None, repeat=3)
    with pytest.raises(TypeError, match=r"axes must be matplotlib's \(got 'times.png'\)"):
        timing.plot("times.png")
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(cl.MissingDependencyError, match="pip install matplotlib"):
        timing.plot()


def test_runs_that_something_held_up_do_not_hide_the_others(driver):
    driver.elapsed = [1.0, 1.1, 1.2, 1.3, 1.3, 1.4, 1.4, 1.5, 90.0, 700.0]
    lines = str(cl.profile.benchmark(lambda: None, repeat=10)).splitlines()
    bins = [line for line in lines if "|" in line]
    assert len(bins) == 8
    assert sum("#" in line for line in bins) >= 3
    assert lines[-1] == "  2 slower, up to 700 ms"


def test_a_timing_is_shown_without_its_times(driver):
    driver.elapsed = [1.0, 2.0, 3.0]
    assert re.fullmatch(
        r"<culaunch\.profile\.Timing <lambda>: median 2 ms, 3 runs on .*>",
        repr(cl.profile.benchmark(lambda: None, repeat=3)),
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ((3,), "function must be a launcher"),
        ((print, "repeat", 0), "repeat must be above 0"),
        ((print, "repeat", 1.5), "repeat must be an int"),
        ((print, "warmup", -1), "warmup must be at least 0"),
        ((print, "flush", 1), "flush must be True or False"),
        ((print, "bytes", -1), "bytes must be above 0"),
        ((print, "flops", "many"), "flops must be a number"),
    ],
)
def test_what_is_refused(driver, call, message):
    function, *options = call
    with pytest.raises((TypeError, ValueError), match=message):
        cl.profile.benchmark(function, **dict([options] if options else []))
