"""Which device a launch goes to, which contexts that takes, and what is current afterwards."""

import pytest
from driver_tables import DEVICE_ATTRIBUTES
from fake_arrays import DlpackArray, ExchangeArray

import culaunch as cl

PRIMARY = 0xC0000


def test_devices(driver):
    assert cl.driver.device_count() == 2
    assert [device.ordinal for device in cl.driver.devices()] == [0, 1]
    device = cl.driver.Device(1)
    assert (device.name, device.arch) == ("Recorder", "sm_90")
    assert device.attribute("multiprocessor_count") == DEVICE_ATTRIBUTES[16]
    assert device.attribute("max_shared_memory_per_block_optin") == 232448
    assert repr(device) == "<culaunch.driver.Device 1: Recorder, sm_90>"
    with pytest.raises(ValueError, match=r"no device attribute 'frobs'; the names are .*warp_size"):
        device.attribute("frobs")


@pytest.mark.parametrize("ordinal", [2, -1, 99])
def test_a_device_that_is_not_there(driver, ordinal):
    for call in (
        lambda: cl.driver.Device(ordinal),
        lambda: cl.synchronize(ordinal),
        lambda: cl.empty(3, "f4", device=ordinal),
        lambda: cl.Stream(ordinal),
        lambda: driver.kernel().attributes(ordinal),
        lambda: driver.kernel().occupancy(32, device=ordinal),
    ):
        with pytest.raises(ValueError, match=f"there is no device {ordinal}: this machine has 2"):
            call()
    assert driver.stack == []


@pytest.mark.parametrize("ordinal", ["0", 1.0, object(), (0,)])
def test_what_is_no_device(driver, ordinal):
    with pytest.raises(TypeError):
        cl.driver.Device(ordinal)


def test_with_makes_a_device_current(driver):
    assert cl.driver.Device().ordinal == 0  # none is current: the first, as in the runtime API
    with cl.driver.Device(1) as device:
        assert device.ordinal == cl.driver.Device().ordinal == 1
        assert driver.stack == [PRIMARY + 1]
        with cl.driver.Device(0):
            assert cl.driver.Device().ordinal == 0
        assert cl.driver.Device().ordinal == 1
    assert driver.stack == []
    with pytest.raises(RuntimeError, match="mine"), cl.driver.Device(1):
        raise RuntimeError("mine")
    assert driver.stack == []


def test_synchronize_waits_for_the_right_device(driver):
    cl.synchronize()
    with cl.driver.Device(1):
        cl.synchronize()
        cl.synchronize(0)
    assert driver.count("cuCtxSynchronize") == 3
    driver.fail("cuCtxSynchronize", 700)
    with pytest.raises(cl.DriverError, match=r"CUDA_ERROR_ILLEGAL_ADDRESS \(700\)"):
        cl.synchronize()
    assert driver.stack == []


# ---- launches


def test_without_arrays_the_current_device_is_used(driver):
    kernel = driver.kernel(8)
    kernel[1, 1](0x1000)
    with cl.driver.Device(1):
        kernel[1, 1](0x1000)
        kernel[1, 1](None)
    assert [launch.device for launch in driver.launches] == [0, 1, 1]


@pytest.mark.parametrize("kind", [ExchangeArray, DlpackArray])
@pytest.mark.parametrize("current", [None, 0, 1])
@pytest.mark.parametrize("device", [0, 1])
def test_whatever_is_current_stays(driver, kind, current, device):
    if current is not None:
        driver.stack.append(PRIMARY + current)
    before = list(driver.stack)
    kernel = driver.kernel(8)
    for _ in range(2):
        kernel[1, 1, 60_000](kind(device=device))
        assert driver.last.device == device
        assert driver.stack == before


@pytest.mark.parametrize("current", [None, 0, 1, "own"])
def test_a_stream_says_where(driver, current):
    """Once a kernel is resident, a launch on a stream asks for no context."""
    if current is not None:
        driver.stack.append(driver.make_context(0) if current == "own" else PRIMARY + current)
    before = list(driver.stack)
    stream = driver.make_stream(1)
    launcher = driver.kernel(8)[1, 1, 0, stream]
    launcher(ExchangeArray(device=1))
    driver.calls.clear()
    launcher(ExchangeArray(device=1))
    assert [name for name, _ in driver.calls] == ["cuLaunchKernelEx"]
    assert (driver.last.stream, driver.last.device, driver.stack) == (stream, 1, before)


@pytest.mark.parametrize("code", [1, 2, 400, 700, 999])
def test_a_failed_launch_leaves_the_context_stack_alone(driver, code):
    driver.stack.append(PRIMARY)
    for function in ("cuLaunchKernelEx", "cuFuncLoad", "cuKernelSetAttribute"):
        kernel = driver.kernel(8)
        driver.fail(function, code, code)
        with pytest.raises(cl.DriverError):
            kernel[1, 1, 60_000](ExchangeArray(device=1))
        driver.failures.clear()
        assert driver.stack == [PRIMARY]
    kernel[1, 1, 60_000](ExchangeArray(device=1))


def test_a_context_of_the_user_s_own_is_used(driver):
    own = driver.make_context(device=1)
    driver.stack.append(own)
    kernel = driver.kernel(8)
    for _ in range(2):
        kernel[1, 1](None)
        kernel[1, 1](ExchangeArray(device=1))
    assert {launch.context for launch in driver.launches} == {own}
    kernel[1, 1](ExchangeArray(device=0))
    assert (driver.last.context, driver.stack) == (PRIMARY, [own])


def test_primary_and_own_contexts_in_turn(driver):
    own = driver.make_context(device=0)
    kernel = driver.kernel(8)
    for context in (PRIMARY, own, PRIMARY, own):
        driver.stack.append(context)
        kernel[1, 1](ExchangeArray())
        kernel[1, 1, 100_000](None)
        assert driver.last.context == driver.launches[-2].context == context
        assert driver.stack == [context]
        driver.stack.pop()


def test_primary_contexts_are_retained_once_and_only_where_needed(driver):
    kernel = driver.kernel(8)
    driver.calls.clear()
    for _ in range(3):
        kernel[1, 1](ExchangeArray(device=1))
        cl.synchronize(1)
        cl.empty(3, "f4", device=1)
    retained = [args[1] for name, args in driver.calls if name == "cuDevicePrimaryCtxRetain"]
    assert retained == [101]


def test_a_context_that_cannot_be_retained_is_tried_again(driver):
    kernel = driver.kernel(8)
    driver.fail("cuDevicePrimaryCtxRetain", 2)
    with pytest.raises(cl.DriverError, match="OUT_OF_MEMORY"):
        kernel[1, 1](ExchangeArray(device=1))
    kernel[1, 1](ExchangeArray(device=1))
