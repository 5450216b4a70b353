"""Why a launch failed, in words (include/culaunch/explain.h)."""

import pytest
from driver_tables import CODES, KERNEL_ATTRIBUTES, MAX_THREADS, STATIC_SHARED
from fake_arrays import ExchangeArray

import culaunch as cl

START = (
    "cannot launch scale(float*, int) with grid (1, 1, 1), block (1, 1, 1) and 0 bytes of dynamic "
    "shared memory on device 0 (Recorder, sm_90): "
)


def failure(driver, code, function="cuLaunchKernelEx", **options):
    kernel = driver.kernel(name="_Z5scalePfi")
    driver.fail(function, code)
    with pytest.raises(cl.DriverError) as caught:
        kernel.launch(grid=1, block=1, **options)
    assert (caught.value.code, caught.value.name) == (code, CODES.get(code, f"CUresult {code}"))
    assert driver.stack == []
    return caught.value


@pytest.mark.parametrize("code", [700, 702, 709, 710, 714, 715, 716, 717, 718, 719])
def test_an_earlier_kernel_is_to_blame(driver, code):
    error = failure(driver, code)
    assert not isinstance(error, cl.LaunchError)
    assert str(error) == (
        START + f"{CODES[code]} ({code}): text of {code}. An earlier kernel on this device failed "
        "with it; this kernel did not run, and nothing more can run in this process on this "
        "device. Run under compute-sanitizer, or with CUDA_LAUNCH_BLOCKING=1, to find that kernel"
    )


@pytest.mark.parametrize("function", ["cuLaunchKernelEx", "cuFuncLoad", "cuKernelGetFunction"])
def test_an_architecture_that_is_not_there(driver, function):
    error = failure(driver, 209, function)
    assert isinstance(error, cl.LaunchError)
    assert str(error) == (
        START + "CUDA_ERROR_NO_BINARY_FOR_GPU (209): text of 209. The image has no code for this "
        "device's architecture: compile it for this device, or with PTX"
    )


def test_ptx_that_is_too_new(driver):
    error = failure(driver, 222, "cuFuncLoad")
    assert "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)" in str(error)
    assert "PTX is newer than this driver" in str(error)


@pytest.mark.parametrize("code", [2, 999, 12345])
def test_any_other_code_is_shown_as_it_is(driver, code):
    error = failure(driver, code)
    assert not isinstance(error, cl.LaunchError)
    assert str(error).startswith(START + CODES.get(code, f"CUresult {code}") + f" ({code})")


@pytest.mark.parametrize(
    "function", ["cuDevicePrimaryCtxRetain", "cuCtxPushCurrent", "cuKernelGetAttribute"]
)
def test_a_failure_on_the_way_to_the_launch(driver, function):
    # Reading the layout needs a context too: get past it first.
    kernel = driver.kernel(8, name="_Z5scalePfi")
    driver.fail(function, 2)
    with pytest.raises(cl.DriverError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        kernel[1, 1](ExchangeArray(device=1))
    assert driver.stack == []
    assert driver.launches == []
    kernel[1, 1](ExchangeArray(device=1))
    assert len(driver.launches) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": 2**31}, r"grid x is 2147483648; this device allows at most 2147483647: use"),
        ({"grid": (1, 65536)}, r"grid y is 65536; this device allows at most 65535: use another"),
        ({"grid": (1, 1, 70000)}, r"grid z is 70000; this device allows at most 65535"),
        ({"block": 1025}, r"block x is 1025; this device allows at most 1024: use a smaller block"),
        ({"block": (1, 1025)}, r"block y is 1025; this device allows at most 1024"),
        ({"block": (1, 1, 65)}, r"block z is 65; this device allows at most 64"),
        ({"block": 2**32 - 1}, r"block x is 4294967295"),
        (
            {"block": (32, 33)},
            r"the block has 1056 threads; this kernel, with 32 registers per",
        ),
        (
            {"block": (2**31, 2**31, 1)},
            r"the block has 4611686018427387904 threads",
        ),
        ({"shared_memory": 232449}, r"232449 bytes of dynamic shared memory plus 0 of static are"),
        (
            {"grid": 264 + 1, "cooperative": True},
            r"the cooperative grid has 265 blocks; at most 264 can be resident",
        ),
        (
            {"grid": 32, "cluster": 32},
            r"the cluster has 32 blocks; with this block and shared memory at most 16 can run",
        ),
    ],
)
def test_limits(driver, options, message):
    kernel = driver.kernel()
    with pytest.raises(cl.LaunchError, match=message):
        kernel.launch(**{"grid": 1, "block": 1, **options})
    assert driver.stack == []
    kernel[1, 1]()


def test_every_limit_that_is_passed_is_named(driver):
    kernel = driver.kernel(attributes={MAX_THREADS: 128, STATIC_SHARED: 2048})
    with pytest.raises(cl.LaunchError) as caught:
        kernel[(1, 70000), (2, 1, 66), 240_000]()
    text = str(caught.value)
    for part in ("grid y is 70000", "block z is 66", "the block has 132 threads", "240000 bytes"):
        assert part in text


def test_devices_without_clusters_or_cooperation(driver):
    for limits in driver.devices:
        limits[120] = limits[95] = 0
    kernel = driver.kernel()
    with pytest.raises(cl.LaunchError, match="this device cannot launch clusters: leave"):
        kernel.launch(grid=2, block=1, cluster=2)
    driver.fail("cuLaunchKernelEx", 801)
    with pytest.raises(
        cl.LaunchError, match="does not support cooperative launches: leave cooperative out"
    ):
        kernel.launch(grid=2, block=1, cooperative=True)


def test_a_kernel_s_own_cluster(driver):
    own = {11: 2, 12: 1, 13: 1}
    assert own.keys() <= KERNEL_ATTRIBUTES.keys()
    kernel = driver.kernel(attributes=own)
    driver.fail("cuLaunchKernelEx", 912)
    with pytest.raises(cl.LaunchError) as caught:
        kernel.launch(grid=4, block=1, cluster=4)
    assert (
        "the cluster is (4, 1, 1); this kernel was compiled for (2, 1, 1): leave cluster out"
        in (str(caught.value))
    )


def test_the_device_of_the_launch_is_asked(driver):
    driver.devices[1].update({75: 12, 76: 1, 97: 101376})
    kernel = driver.kernel(8)
    with pytest.raises(cl.LaunchError) as caught:
        kernel[1, 1, 102_000](ExchangeArray(device=1))
    text = str(caught.value)
    assert "on device 1 (Recorder, sm_121)" in text
    assert "a block on this device has at most 101376" in text
    kernel[1, 1, 102_000](ExchangeArray(device=0))


@pytest.mark.parametrize("name", ["f", "v", "Pf", "St", "Dh", "PKc", "_Z", "Z1kv", "__Z1kv"])
def test_a_kernel_whose_name_looks_mangled_keeps_it(driver, name):
    """The C++ library reads such names as types: "float", "void", "float*"."""
    kernel = driver.kernel(name=name)
    assert repr(kernel[1, 1]).startswith(f"<culaunch.Launcher of {name}, grid")
    driver.fail("cuLaunchKernelEx", 1)
    with pytest.raises(cl.DriverError, match=f"cannot launch {name} with grid"):
        kernel[1, 1]()


def test_a_very_long_name_stays_as_it_is(driver):
    """The demangler of an error message recurses, and runs on any thread's stack."""
    for name in ("_Z1k" + "P" * 200_000 + "f", "_Z1k" + "I1A" * 50_000 + "E" * 50_000 + "vv"):
        kernel = driver.kernel(8, name=name)
        assert name in repr(kernel[1, 1])


# Each part repeats the one before three times: the C++ library would fill the memory with it.
HUGE = "_Z1k1aIiiE" + "".join(f"S_IS{i}_S{i}_S{i}_E" for i in "0123456789ABCDEFGHIJKLMNOPQRSTUV")


@pytest.mark.parametrize(
    "name",
    [
        HUGE,
        "__nv_static_3_abc__Z1kPf",  # of nvcc -rdc
        "_ZN3cub17CUB_200700_750_NS_11EmptyKernelIvEEvv",
        "_Z1k" + 300 * "1a",
        "_ZZ1kvE1x_0",
    ],
)
def test_messages_of_both_halves_name_a_kernel_alike(driver, name):
    kernel = driver.kernel(name=name)
    assert repr(kernel[1, 1]).startswith(f"<culaunch.Launcher of {kernel.demangled}, grid")
    driver.fail("cuLaunchKernelEx", 1)
    with pytest.raises(cl.DriverError) as caught:
        kernel[1, 1]()
    assert str(caught.value).startswith(f"cannot launch {kernel.demangled} with grid")


@pytest.mark.parametrize("name", ["_Z1kIKfEvPKT_", "_Z1kIJKfVdEEvDpPKT_", "_ZN1a1kILb1EEEvPA3_Kf"])
def test_both_halves_demangle_alike(driver, name):
    kernel = driver.kernel(8, name=name)
    assert repr(kernel[1, 1]).startswith(f"<culaunch.Launcher of {kernel.demangled}, grid")
