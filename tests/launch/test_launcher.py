"""The launch configuration, the launchers that are kept, what the driver is told and when."""

import itertools
import struct

import numpy as np
import pytest
from driver_tables import (
    CLUSTER,
    COOPERATIVE,
    DYNAMIC_SHARED,
    LARGE_CLUSTER,
    PREFERRED_CLUSTER,
    PRIORITY,
    PROGRAMMATIC,
    STATIC_SHARED,
)
from fake_arrays import ExchangeArray

import culaunch as cl

# Under the GIL PyGILState_Check gives 1, CUDA_ERROR_INVALID_VALUE; without it 0, success.


# ---- grid, block, shared memory


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3, (3, 1, 1)),
        ((3,), (3, 1, 1)),
        ((3, 4), (3, 4, 1)),
        ((3, 4, 5), (3, 4, 5)),
        ([3, 4], (3, 4, 1)),
        (np.int64(3), (3, 1, 1)),
        ((np.int32(3), np.uint8(4)), (3, 4, 1)),
        (np.array([3, 4]), (3, 4, 1)),
    ],
    ids=repr,
)
def test_the_forms_of_a_size(driver, given, expected):
    kernel = driver.kernel()
    kernel[given, given]()
    kernel.launch(grid=given, block=given)
    kernel.configure(grid=given, block=given)()
    for launch in driver.launches:
        assert (launch.grid, launch.block) == (expected, expected)
    assert len(driver.launches) == 3


@pytest.mark.parametrize(
    "given",
    [
        1.0, "3", (), (1, 2, 3, 4), (1, 2.0), (1, None), None, -1, (1, -1), True, (1, False),
        range(10**12), pytest.param(itertools.count(1), id="count"),
        pytest.param(object(), id="object"), {}, b"", 1j,
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_size(driver, given):
    kernel = driver.kernel()
    for name in ("grid", "block"):
        words = {"grid": 1, "block": 1, name: given}
        message = rf"^{name} must be an int, or a tuple of 1 to 3 ints, .*\(got "
        with pytest.raises(TypeError, match=message):
            kernel[words["grid"], words["block"]]
        with pytest.raises(TypeError, match=message):
            kernel.configure(**words)
        with pytest.raises(TypeError, match=message):
            kernel.launch(**words)
    if given is not None:
        with pytest.raises(TypeError, match=r"^cluster must be an int"):
            kernel.configure(grid=1, block=1, cluster=given)
        with pytest.raises(TypeError, match=r"^preferred_cluster must be an int"):
            kernel.configure(grid=1, block=1, cluster=1, preferred_cluster=given)


@pytest.mark.parametrize(
    "given",
    [2**32, 2**80, 10**5000, (1, 2**40), (1, 1, 10**5000)],
    ids=["32", "80", "huge", "y", "z"],
)
def test_a_size_that_is_too_large(driver, given):
    kernel = driver.kernel()
    for name in ("grid", "block", "cluster", "preferred_cluster"):
        with pytest.raises(OverflowError, match=rf"^{name} must be an int, or a tuple .*\(got "):
            kernel.configure(**{"grid": 1, "block": 1, name: given})


@pytest.mark.parametrize("given", [0, (0,), (1, 0), (4, 1, 0)])
def test_an_empty_problem_is_an_error(driver, given):
    kernel = driver.kernel()
    for name in ("grid", "block", "cluster"):
        words = {"grid": 1, "block": 1, name: given}
        with pytest.raises(ValueError, match=rf"^{name} must be at least 1 in every dimension"):
            kernel.launch(**words)
    with pytest.raises(ValueError, match="skip the launch of an empty problem"):
        kernel[given, 1]


def test_the_largest_sizes_reach_the_driver(driver):
    kernel = driver.kernel()
    kernel[2**31 - 1, 1024]()
    assert driver.last.grid == (2**31 - 1, 1, 1)
    kernel[(1, 65535, 65535), (1, 1, 64)]()
    assert driver.last.grid == (1, 65535, 65535)


@pytest.mark.parametrize(
    "key",
    [1, (1,), (1, 1, 0, None, 0), "grid", None, slice(1, 2), (), [1, 1]],
    ids=repr,
)
def test_the_chevron_takes_two_to_four(driver, key):
    kernel = driver.kernel()
    with pytest.raises(TypeError, match=r"a kernel takes \[grid, block\]"):
        kernel[key]


@pytest.mark.parametrize("given", [-1, 1.5, "1", None, (1,), True], ids=repr)
def test_what_is_no_amount_of_shared_memory(driver, given):
    kernel = driver.kernel()
    with pytest.raises(TypeError, match=r"^shared_memory must be a number of bytes"):
        kernel[1, 1, given]
    if given is not None:
        with pytest.raises(TypeError, match=r"^shared_memory must be a number of bytes"):
            kernel.configure(grid=1, block=1, shared_memory=given)


def test_a_launch_needs_a_grid_and_a_block(driver):
    kernel = driver.kernel()
    for words in ({}, {"grid": 1}, {"block": 1}):
        with pytest.raises(TypeError, match=r"grid|block"):
            kernel.launch(**words)
        with pytest.raises(TypeError, match=r"grid|block"):
            kernel.configure(**words)
    with pytest.raises(TypeError, match="gird"):
        kernel.configure(gird=1, grid=1, block=1)
    with pytest.raises(TypeError):
        kernel.configure(1, 1)


def test_the_chevron_and_the_keywords_launch_the_same(driver):
    kernel = driver.kernel(4)
    stream = driver.make_stream(0)
    kernel[(2, 3), (4, 5), 64, stream](7)
    kernel.launch(7, grid=(2, 3), block=(4, 5), shared_memory=64, stream=stream)
    first, second = driver.launches
    assert first == second
    assert (first.shared_memory, first.stream) == (64, stream)


# ---- launch attributes


def test_every_attribute_s_bytes(driver):
    kernel = driver.kernel()
    kernel.launch(
        grid=(8, 4, 4), block=32, cluster=(2, 1, 1), preferred_cluster=(4, 2, 1),
        cooperative=True, programmatic=True, priority=-3,
    )  # fmt: skip
    zeros = bytes(64)
    assert driver.last.attributes == {
        CLUSTER: struct.pack("3I", 2, 1, 1) + zeros[12:],
        PREFERRED_CLUSTER: struct.pack("3I", 4, 2, 1) + zeros[12:],
        COOPERATIVE: struct.pack("i", 1) + zeros[4:],
        PROGRAMMATIC: struct.pack("i", 1) + zeros[4:],
        PRIORITY: struct.pack("i", -3) + zeros[4:],
    }
    kernel.launch(grid=1, block=1, priority=0)
    assert driver.last.attributes == {PRIORITY: zeros}
    kernel.launch(grid=1, block=1, cooperative=False, programmatic=False, cluster=None)
    assert driver.last.attributes == {}


def test_the_grid_is_a_multiple_of_the_cluster(driver):
    kernel = driver.kernel()
    with pytest.raises(ValueError, match=r"multiple of cluster \(got grid \(5, 1, 1\), cluster"):
        kernel.configure(grid=5, block=1, cluster=2)
    with pytest.raises(ValueError, match="multiple of preferred_cluster"):
        kernel.configure(grid=6, block=1, cluster=2, preferred_cluster=4)
    with pytest.raises(ValueError, match="preferred_cluster needs cluster"):
        kernel.configure(grid=6, block=1, preferred_cluster=2)


@pytest.mark.parametrize("priority", [2**31, -(2**31) - 1, 2**80, "1", 1.0])
def test_what_is_no_priority(driver, priority):
    with pytest.raises((TypeError, OverflowError)):
        driver.kernel().configure(grid=1, block=1, priority=priority)


# ---- launchers that are kept


def test_the_same_key_gives_the_same_launcher(driver):
    kernel = driver.kernel()
    key = (4, (128, 1, 1))
    first = kernel[key]
    assert kernel[key] is first
    assert kernel[4, 128] is first
    assert kernel[(4,), 128] is first
    assert kernel[(4, 1, 1), (128, 1)] is first
    assert kernel[4, 128, 0] is first
    assert kernel[4, 129] is not first
    assert kernel[4, 128, 1] is not first
    assert kernel[128, 4] is not first


def test_launchers_of_a_stream_are_apart(driver):
    kernel = driver.kernel()
    stream = driver.make_stream()
    assert kernel[1, 1, 0, stream] is not kernel[1, 1]
    kernel[1, 1, 0, stream]()
    kernel[1, 1]()
    kernel[1, 1, 0, None]()
    assert [launch.stream for launch in driver.launches] == [stream, 0, 0]


def test_equal_keys_of_other_types_do_not_mislead(driver):
    kernel = driver.kernel()
    kernel[1, 1]
    for key in ((1.0, 1), (1, "1")):
        with pytest.raises(TypeError):
            kernel[key]

    class Wide(tuple):
        __slots__ = ()

    assert kernel[Wide((1, 2))].block == (2, 1, 1)


def test_the_oldest_launcher_goes_first(driver):
    kernel = driver.kernel()
    launchers = [kernel[i + 1, 1] for i in range(8)]
    assert [kernel[i + 1, 1] for i in range(8)] == launchers
    kernel[100, 1]
    assert kernel[8, 1] is launchers[7]
    assert kernel[1, 1] is not launchers[0]
    for i, launcher in enumerate(launchers):
        assert launcher.grid == (i + 1, 1, 1)
        launcher()


def test_a_launcher_says_what_it_is(driver):
    kernel = driver.kernel(8, 4, name="_Z5scalePfi")
    stream = driver.make_stream()
    launcher = kernel.configure(grid=(4, 2), block=64, cluster=2, shared_memory=9, stream=stream)
    assert launcher.kernel is kernel
    assert launcher.grid == (4, 2, 1)
    assert launcher.block == (64, 1, 1)
    assert launcher.cluster == (2, 1, 1)
    assert launcher.shared_memory == 9
    assert launcher.stream == stream
    assert kernel[1, 1].cluster is None
    assert kernel[1, 1].stream is None
    assert repr(launcher) == (
        "<culaunch.Launcher of scale(float*, int), grid (4, 2, 1), block (64, 1, 1), 9 bytes of "
        "shared memory, cluster (2, 1, 1)>"
    )
    assert isinstance(launcher, cl.Launcher)
    with pytest.raises(TypeError):
        cl.Launcher()
    with pytest.raises(AttributeError):
        launcher.grid = 1


# ---- what the driver is asked, and how often


def test_a_kernel_is_made_resident_once_for_each_device(driver):
    kernel = driver.kernel(8)
    for _ in range(3):
        for device in (0, 1):
            kernel[1, 1](ExchangeArray(device=device))
    assert driver.count("cuFuncLoad") == 2
    assert driver.count("cuDevicePrimaryCtxRetain") == 2
    assert [launch.device for launch in driver.launches] == [0, 1] * 3


def test_a_launch_that_goes_well_asks_for_nothing_it_knows(driver):
    launcher = driver.kernel(8, 4)[1, 1]
    array = ExchangeArray()
    with cl.driver.Device(0):
        launcher(array, 1)
        driver.calls.clear()
        launcher(array, 1)
    names = [name for name, _ in driver.calls]
    assert names[-2:] == ["cuLaunchKernelEx", "cuCtxPopCurrent"]
    assert set(names) <= {
        "cuLaunchKernelEx",
        "cuCtxPopCurrent",
        "cuCtxGetCurrent",
        "cuCtxGetDevice",
    }


def test_shared_memory_is_opted_in_once_for_each_device(driver):
    kernel = driver.kernel(8, attributes={STATIC_SHARED: 1024})
    kernel[1, 1, 47 * 1024](ExchangeArray())
    assert driver.count("cuKernelSetAttribute") == 0
    for shared in (47 * 1024 + 1, 100_000, 232448 - 1024, 64, 200_000):
        kernel[1, 1, shared](ExchangeArray())
        assert driver.last.shared_memory == shared
    assert driver.count("cuKernelSetAttribute") == 1
    kernel[1, 1, 100_000](ExchangeArray(device=1))
    kernel[1, 1, 200_000](ExchangeArray(device=1))
    sets = [args for name, args in driver.calls if name == "cuKernelSetAttribute"]
    assert [(args[0], args[1], args[3]) for args in sets] == [
        (DYNAMIC_SHARED, 232448 - 1024, 100),
        (DYNAMIC_SHARED, 232448 - 1024, 101),
    ]


@pytest.mark.parametrize("shared", [232448 - 1024 + 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_more_shared_memory_than_there_is(driver, shared):
    kernel = driver.kernel(attributes={STATIC_SHARED: 1024})
    with pytest.raises(cl.LaunchError) as caught:
        kernel[1, 1, shared]()
    assert (
        f"{shared} bytes of dynamic shared memory plus 1024 of static are {shared + 1024}; a block "
        "on this device has at most 232448: ask for at most 231424 of dynamic shared memory"
    ) in str(caught.value)
    assert driver.count("cuKernelSetAttribute") == 0
    kernel[1, 1]()  # the kernel is as good as before


def test_clusters_of_more_than_eight_are_opted_in_once(driver):
    kernel = driver.kernel()
    kernel.launch(grid=16, block=1, cluster=8)
    assert driver.count("cuKernelSetAttribute") == 0
    launcher = kernel.configure(grid=16, block=1, cluster=16)
    launcher()
    launcher()
    sets = [args for name, args in driver.calls if name == "cuKernelSetAttribute"]
    assert [(args[0], args[1], args[3]) for args in sets] == [(LARGE_CLUSTER, 1, 100)]
    kernel.launch(grid=(4, 4), block=1, cluster=(4, 4))
    kernel.launch(grid=16, block=1, cluster=2, preferred_cluster=16)
    assert driver.count("cuKernelSetAttribute") == 1
