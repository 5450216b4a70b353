"""Junk for the arguments of devices, arrays, modules, kernels and their launches."""

import ctypes
import functools
import os

import numpy as np
import pytest
from junk import wrong_answers

import culaunch as cl
from culaunch import testing

PTX = b""".version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 v;
.visible .entry k(
	.param .u64 p, .param .u32 n, .param .f32 x, .param .align 8 .b8 s[8], .param .u8 c)
{
	ret;
}
"""
TYPES = "float*, int, float, float2, unsigned char"
FLOATS = np.zeros(4, np.float32)
PAIR = np.zeros((), np.dtype([("x", "f4"), ("y", "f4")]))[()]
GIVEN = {"a": FLOATS, "b": 1, "c": 1.0, "d": PAIR, "e": 1}
ONE = {"grid": 1, "block": 1}


class Pair(ctypes.Structure):
    _fields_ = [("x", ctypes.c_float), ("y", ctypes.c_float)]


@pytest.fixture(autouse=True)
def emulator(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")


@functools.cache
def module():
    return cl.load(PTX)


@functools.cache
def kernel():
    return module()["k"]


@functools.cache
def typed():
    return module().kernel("k", signature=TYPES)


def variable():
    return module().get_global("v")


def array():
    return cl.to_device(np.zeros((64, 64), np.float32))


def timed():
    return cl.profile.Timing("k", "a device", (1.0,), False, False, 1e6, 1e6, 1e12, 1e13)


def profiled():
    with cl.profile.launches() as profile:
        kernel()[1, 1](*GIVEN.values())
    return profile


def exits(context):
    with context:
        pass


# A correct call of each name, made again for each test.
CALLS = {
    "Device": lambda: (cl.driver.Device, {"ordinal": 0}),
    "Device.attribute": lambda: (cl.driver.Device(0).attribute, {"name": "clock_rate"}),
    "DeviceArray": lambda: (cl.DeviceArray, {"shape": (4,), "dtype": "f4", "device": None}),
    "DeviceArray.numpy": lambda: (array().numpy, {}),
    "DeviceArray.__getitem__": lambda: (lambda index: array()[index], {"index": 3}),
    "DeviceArray.view": lambda: (array().view, {"dtype": "u1"}),
    "DeviceArray.copy_from": lambda: (array().copy_from, {"source": array()}),
    "DeviceArray.copy_to": lambda: (array().copy_to, {"target": array()}),
    "DeviceArray.fill": lambda: (array().fill, {"value": 1.0}),
    "DeviceArray.fill of ints": lambda: (array().view("i4").fill, {"value": 1}),
    "DeviceArray.__dlpack__": lambda: (array().__dlpack__, {}),
    "GlobalVariable": lambda: (cl.kernel.GlobalVariable, {"address": 0, "size": 4, "device": 0}),
    "GlobalVariable.read": lambda: (variable().read, {}),
    "GlobalVariable.write": lambda: (variable().write, {"value": b"1234"}),
    "GlobalVariable.fill": lambda: (variable().fill, {}),
    "GlobalVariable.as_array": lambda: (variable().as_array, {}),
    "Event": lambda: (cl.Event, {}),
    "Event.record": lambda: (cl.Event().record, {}),
    "Event.elapsed": lambda: (cl.Stream().record().elapsed, {"since": cl.Stream().record()}),
    "Kernel": lambda: (
        cl.Kernel, {"module": module(), "name": "k", "signature": kernel().signature}
    ),
    "Kernel.__getitem__": lambda: (lambda key: kernel()[key], {"key": (1, 1)}),
    "Kernel.__getitem__ of four": lambda: (
        lambda grid, block, shared, stream: kernel()[grid, block, shared, stream],
        {**ONE, "shared": 0, "stream": None},
    ),
    "Kernel.attributes": lambda: (kernel().attributes, {}),
    "Kernel.configure": lambda: (
        kernel().configure,
        {**ONE, "cluster": None, "preferred_cluster": None, "shared_memory": 0, "stream": None,
         "cooperative": False, "programmatic": False, "priority": None},
    ),
    "Kernel.launch": lambda: (
        lambda **keywords: kernel().launch(*GIVEN.values(), **keywords),
        {**ONE, "cluster": None, "preferred_cluster": None, "shared_memory": 0, "stream": None,
         "cooperative": False, "programmatic": False, "priority": None},
    ),
    "Kernel.occupancy": lambda: (kernel().occupancy, {"block": 32}),
    "Launcher": lambda: (lambda **given: kernel()[1, 1](*given.values()), GIVEN),
    "Launcher with types": lambda: (
        lambda **given: typed()[1, 1](*given.values()), {**GIVEN, "d": Pair(1, 2)}
    ),
    "Launcher, all at once": lambda: (
        lambda given: typed()[1, 1](*given if isinstance(given, (tuple, list)) else (given,)),
        {"given": tuple(GIVEN.values())},
    ),
    "Module": lambda: (cl.Module, {"image": cl.Image(PTX)}),
    "Module.__contains__": lambda: (lambda name: name in module(), {"name": "k"}),
    "Module.__getitem__": lambda: (lambda name: module()[name], {"name": "k"}),
    "Module.get_global": lambda: (module().get_global, {"name": "v"}),
    "Module.kernel": lambda: (module().kernel, {"name": "k", "signature": TYPES}),
    "Parameter": lambda: (cl.kernel.Parameter, {"offset": 0, "size": 4, "type": "int"}),
    "Signature": lambda: (cl.kernel.Signature, {"parameters": (), "source": "x"}),
    "Stream": lambda: (cl.Stream, {"device": 0}),
    "Stream.from_handle": lambda: (cl.Stream.from_handle, {"stream": 0}),
    "Stream.priorities": lambda: (cl.Stream.priorities, {}),
    "Stream.record": lambda: (cl.Stream().record, {}),
    "Stream.wait": lambda: (cl.Stream().wait, {"other": cl.Stream()}),
    "Surface": lambda: (cl.arguments.Surface, {"array": FLOATS}),
    "Texture": lambda: (cl.arguments.Texture, {"array": FLOATS}),
    "benchmark": lambda: (cl.profile.benchmark, {"function": int, "repeat": 2, "warmup": 0}),
    "launches": lambda: (lambda **given: exits(cl.profile.launches(**given)), {"limit": 9}),
    "plot_roofline": lambda: (cl.profile.plot_roofline, {"timings": [timed()]}),
    "Profile.to_json": lambda: (profiled().to_json, {"indent": None}),
    "Profile.save": lambda: (profiled().save, {"path": os.devnull}),
    "tune": lambda: (cl.tuning.tune, {"target": kernel(), "configs": [{"grid": 1, "block": 1}]}),
    "TunedConfigs": lambda: (cl.tuning.TunedConfigs, {"path": None}),
    "TunedConfigs.find": lambda: (cl.tuning.TunedConfigs().find, {"device": "none"}),
    "TensorMap": lambda: (lambda *, data: cl.arguments.TensorMap(data), {"data": None}),
    "TensorMap.tiled": lambda: (cl.arguments.TensorMap.tiled, {"array": array(), "box": (8, 8)}),
    "empty": lambda: (cl.empty, {"shape": 4, "dtype": "f4"}),
    "managed": lambda: (cl.managed, {"shape": 4}),
    "pinned": lambda: (cl.pinned, {"shape": 4}),
    # Bytes: b"junk" is a shape, too, of 146 million elements.
    "zeros": lambda: (cl.zeros, {"shape": 4, "dtype": "u1"}),
    "synchronize": lambda: (cl.synchronize, {}),
    "testing.assert_allclose": lambda: (
        testing.assert_allclose, {"actual": FLOATS, "desired": FLOATS}
    ),
    "testing.emulator_options": lambda: (
        lambda **options: exits(testing.emulator_options(**options)),
        {"check_races": None, "check_uninitialized": None, "time_limit": None},
    ),
    "testing.profile": lambda: (testing.profile, {"call": lambda: None}),
    # Not the number of seeds: a large one is no mistake, but takes as long.
    "testing.for_each_seed": lambda: (
        lambda test: testing.for_each_seed(test, 1), {"test": lambda: None}
    ),
    "testing.from_driver": lambda: (testing.from_driver, {"array": FLOATS}),
    "testing.to_driver": lambda: (testing.to_driver, {"array": FLOATS}),
    "peer_array": lambda: (cl.arguments.peer_array, {"array": FLOATS, "device": 0}),
    "preload": lambda: (
        lambda sources, devices: cl.ship.preload(sources, devices=devices),
        {"sources": module(), "devices": 0},
    ),
    "to_device": lambda: (cl.to_device, {"array": FLOATS}),
}  # fmt: skip
# What a protocol, or the documentation of the function itself, wants besides.
ALSO = {
    "DeviceArray.__dlpack__": BufferError,
    "testing.assert_allclose": AssertionError,
    "TunedConfigs.find": KeyError,
}


@pytest.mark.parametrize("name", CALLS)
def test_junk_is_refused_by_name(name):
    function, call = CALLS[name]()
    assert wrong_answers(function, call, ALSO.get(name, ())) == []


def test_junk_is_refused_after_a_good_call(emulator):
    """The second call goes the quick way, which has learnt the types of the first."""
    launcher = typed()[1, 1]
    launcher(*GIVEN.values())
    assert wrong_answers(lambda **given: launcher(*given.values()), GIVEN) == []


@pytest.mark.parametrize("name", ["cooperative", "programmatic"])
@pytest.mark.parametrize("value", ["no", 1, 0, None])
def test_a_switch_of_a_launch_takes_true_and_false_alone(name, value):
    with pytest.raises(TypeError, match=f"{name} must be True or False"):
        kernel().configure(**ONE, **{name: value})
