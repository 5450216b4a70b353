"""Requests of a call on a GPU to XLA, and errors when XLA refuses, with a double of XLA."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from xla_double import XlaDouble, handler_of, metadata

import culaunch as cl
from culaunch import _core
from culaunch._emulator import Device
from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._jax.plan import Plan
from culaunch._launch.devices import driver as drivers

pytestmark = pytest.mark.needs("numpy")
MINORS = [1, 2, 3, 4]
X = np.arange(5, dtype=np.float32)


@pytest.fixture(scope="module")
def emulated_gpu():
    """An emulated driver that reports its memory as a GPU's."""
    emulated = EmulatedDriver(Device())
    functions = emulated.table()
    addresses = {
        name: ctypes.cast(one, ctypes.c_void_p).value or 0 for name, one in functions.items()
    }
    yield _core.Driver.from_functions("emulator", addresses, (2,), True)
    KEPT.append((emulated, functions))  # C code holds it for the life of the process


KEPT = []


@pytest.fixture
def kernels(emulated_gpu, image, monkeypatch):
    monkeypatch.setitem(drivers.open_drivers, "emulator", emulated_gpu)
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    return cl.load(image)


def plan_of(function, *values):
    """Return the plan of a call whose arrays are float32."""
    arrays = tuple(0 if isinstance(one, np.ndarray) else -1 for one in values)
    shapes = tuple(
        (one.shape, cl.elementwise.float32) for one in values if isinstance(one, np.ndarray)
    )
    return Plan(function, values, arrays, shapes)


def call(double, function, *values):
    """Call a function as XLA does; return what it gives, or XLA's error."""
    plan = plan_of(function, *values)
    arguments = [cl.to_device(one) for one in values if isinstance(one, np.ndarray)]
    results = [cl.empty(shape, kind.name) for shape, kind in plan.outputs]
    error = double.call(plan.text, arguments, results)
    assert double.defects == []
    return error if error is not None else [one.numpy().tolist() for one in results]


@pytest.fixture
def twice(kernels):
    """Scale twice, with scratch memory between the kernels."""

    @cl.function
    def twice(x, factor: float):
        scratch = cl.empty((x.size,), "float32", like=x)
        y = cl.empty_like(x)
        launch = kernels["scale<float>"][1, 64]
        launch(y, x, factor, x.size)
        launch(scratch, y, factor, x.size)
        launch(y, scratch, factor, x.size)
        return y.view(-1, 1)

    return twice


@pytest.mark.parametrize("minor", MINORS)
def test_scratch_memory(twice, minor):
    double = XlaDouble(minor)
    assert call(double, twice, X, 2.0) == [[[0.0], [8.0], [16.0], [24.0], [32.0]]]
    assert double.allocated == [32, 32]


def test_results_in_the_memory_of_others(kernels):
    """In another order than the results: one is saved before the other is written."""

    @cl.function
    def swapped(x):
        first, second = cl.empty_like(x), cl.empty_like(x)
        launch = kernels["scale<float>"][1, 64]
        launch(first, x, 2.0, x.size)
        launch(second, x, 3.0, x.size)
        return second, first, second

    double = XlaDouble()
    assert call(double, swapped, X) == [(X * 3).tolist(), (X * 2).tolist(), (X * 3).tolist()]
    assert double.allocated == [32, 32, 32]


def test_what_is_written(kernels):
    @cl.function
    def written(cache):
        kernels["fill<float>"][1, 64](cache, 7.0, cache.size)

    assert call(XlaDouble(), written, X) == [[7.0] * 5]


def test_the_stream_and_the_device_of_xla(driver):
    kernel = driver.kernel(8, 8, 4, signature="float*, const float*, int")

    @cl.function
    def launched(x):
        y = cl.empty_like(x)
        kernel[1, 64](y, x, x.size)
        return y

    stream = driver.make_stream(1)
    double = XlaDouble(stream=stream, ordinal=1)
    call(double, launched, X)
    assert (driver.last.stream, driver.last.device) == (stream, 1)


@pytest.mark.parametrize("minor", [1, 4])
@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("DeviceMemory_Allocate", r"XLA cannot allocate 20 bytes of scratch memory: out of it"),
        ("DeviceMemory_Free", r"XLA cannot free scratch memory: out of it"),
        ("Stream_Get", r"XLA does not provide the stream of the call: out of it"),
        ("DeviceOrdinal_Get", r"XLA does not provide the device of the call: out of it"),
    ],
)
def test_what_xla_says_is_said(twice, minor, function, said):
    double = XlaDouble(minor)
    double.fails[function] = ["out of it"]
    error = call(double, twice, X, 2.0)
    assert isinstance(error, str)
    assert error.startswith("RuntimeError: ")
    assert said in error
    assert error.count("RuntimeError") == 1
    # The next call is as any other.
    assert call(double, twice, X, 2.0) == [[[0.0], [8.0], [16.0], [24.0], [32.0]]]


def test_memory_that_is_aligned_to_less_is_refused(twice):
    """Programs are made for arrays at multiples of 16, which XLA is asked for."""
    double = XlaDouble()
    double.beside = 8
    assert "which is not a multiple of 16" in call(double, twice, X, 2.0)


def test_no_memory_to_save_a_result(kernels):
    @cl.function
    def swapped(x):
        first, second = cl.zeros_like(x), cl.zeros_like(x)
        return second, first

    double = XlaDouble()
    double.fails["DeviceMemory_Allocate"] = ["none left"]
    assert "XLA cannot allocate 20 bytes of scratch memory for a result: none left" in call(
        double, swapped, X
    )


def test_the_first_error_stays(twice, monkeypatch):
    """Memory that does not come back after an error is reported, too."""
    told = []
    monkeypatch.setattr("sys.unraisablehook", lambda one: told.append(str(one.exc_value)))
    double = XlaDouble()
    double.fails = {"DeviceMemory_Allocate": [None, "none left"], "DeviceMemory_Free": ["not mine"]}
    error = double.call(plan_of(twice, X, 2.0).text, [cl.to_device(X)], [cl.empty((5, 1))])
    assert "XLA cannot allocate 20 bytes of scratch memory: none left" in error
    assert told == ["XLA cannot free scratch memory: not mine"]
    assert double.defects == []


@pytest.mark.parametrize("stage", [0, 1, 2, 4])
def test_other_stages_do_nothing(twice, stage):
    result = cl.to_device(-X)
    double = XlaDouble()
    text = plan_of(twice, X, 2.0).text
    assert double.call(text, [cl.to_device(X)], [result], stage) is None
    assert (result.numpy().tolist(), double.defects, double.allocated) == ((-X).tolist(), [], [])


@pytest.mark.parametrize("before", [None, 77], ids=["alone", "behind another extension"])
@pytest.mark.parametrize(("platform", "minor"), [("cpu", 1), ("CUDA", 2), ("CUDA", 99)])
def test_a_call_is_no_part_of_a_graph(platform, minor, before):
    """XLA asks every handler whether a graph may hold its work: scratch memory forbids it."""
    said = metadata(handler_of(platform, minor), before)
    assert (said.traits, said.version.major) == (0, 0)
    # No newer interface than the one that it was written for, and none newer than XLA's.
    assert said.version.minor == min(minor, 4)


def test_each_handler_keeps_its_version():
    """XLA refuses a handler of another version, and a process may have more than one XLA."""
    asked = [(platform, minor) for platform in ("cpu", "CUDA") for minor in (0, *MINORS, 99)]
    handlers = [handler_of(*one) for one in asked]
    versions = [metadata(one).version.minor for one in handlers]
    assert versions == [min(minor, 4) for _, minor in asked]


def test_the_double_is_as_strict_as_xla(twice):
    """Mistakes that it reports: a size, an alignment, memory that stays."""
    double = XlaDouble()
    held = (ctypes.c_uint64 * 8)(16, 0, double.CONTEXT, 64, 64, 0)
    allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(double._api.DeviceMemory_Allocate)
    double._is_called = True
    for size, alignment, said in (
        (16, 16, "Unexpected XLA_FFI_DeviceMemory_Allocate_Args size: expected 48, got 16"),
        (48, 64, "Unsupported alignment: 64"),
        (48, 12, "Unsupported alignment: 12"),
    ):
        held[0], held[4] = size, alignment
        assert double._errors[allocate(ctypes.addressof(held))][0].startswith(said)
    held[0], held[4] = 48, 16
    assert allocate(ctypes.addressof(held)) is None
    double.call(plan_of(twice, X, 2.0).text, [cl.to_device(X)], [cl.empty((5, 1))])
    assert double.defects == ["1 allocations did not come back", "3 errors were not destroyed"]
