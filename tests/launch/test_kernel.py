"""The attributes of a kernel, from its image and from the driver."""

import pytest
from driver_tables import MAX_THREADS, REGISTERS, STATIC_SHARED
from fake_arrays import ExchangeArray

import culaunch as cl


def test_a_kernel(driver):
    kernel = driver.kernel(8, 4, name="_Z5scalePfi")
    assert kernel.name == "_Z5scalePfi"
    assert kernel.demangled == "scale(float*, int)"
    assert str(kernel.signature) == "(float*, int)"
    assert kernel.signature.source == "name"
    assert kernel.handle in driver.kernels
    assert isinstance(kernel.module, cl.Module)
    assert repr(kernel) == "<culaunch.Kernel scale(float*, int) (float*, int)>"
    plain = driver.kernel(8, 24)
    assert plain.demangled == "k"
    assert repr(plain) == "<culaunch.Kernel k (8 bytes, 24 bytes)>"


def test_a_kernel_is_made_by_its_module_alone(driver):
    module = driver.kernel().module
    for make in (
        lambda: cl.Kernel(),
        lambda: cl.Kernel(module),
        lambda: cl.Kernel(module, "k"),
        lambda: cl.Kernel(5, "k", None),
        lambda: cl.Kernel(module, 5, module["k"].signature),
    ):
        with pytest.raises((TypeError, AttributeError)):
            make()
    with pytest.raises(cl.KernelNotFoundError):
        cl.Kernel(module, "missing", module["k"].signature)


def test_types_of_another_kernel_are_refused(driver):
    two, one = driver.kernel(4, 4), driver.kernel(4)
    with pytest.raises(ValueError, match="one entry per parameter"):
        cl.Kernel(one.module, "k", two.signature)


def test_attributes(driver):
    kernel = driver.kernel(
        attributes={MAX_THREADS: 512, STATIC_SHARED: 4096, 2: 8, 3: 16, REGISTERS: 64, 5: 80, 6: 90}
    )
    expected = cl.kernel.KernelAttributes(
        max_threads_per_block=512, registers=64, static_shared=4096, const_bytes=8, local_bytes=16,
        max_dynamic_shared=232448 - 4096, ptx_version=80, binary_version=90,
    )  # fmt: skip
    assert kernel.attributes() == kernel.attributes(1) == kernel.attributes(device=0) == expected
    driver.devices[1][97] = 101376
    assert kernel.attributes(1).max_dynamic_shared == 101376 - 4096
    with cl.driver.Device(1):
        assert kernel.attributes().max_dynamic_shared == 101376 - 4096
    assert driver.stack == []
    driver.fail("cuKernelGetAttribute", 209)
    with pytest.raises(cl.DriverError, match="reading an attribute of k failed: CUDA_ERROR_NO_BIN"):
        kernel.attributes()


def test_occupancy(driver):
    kernel = driver.kernel()
    assert kernel.occupancy(256) == cl.kernel.Occupancy(2, 768, 264, 8, None)
    assert kernel.occupancy((16, 16), 100_000, cluster=2, device=1) == cl.kernel.Occupancy(
        2, 768, 264, 8, 33
    )
    asked = [args[2:] for name, args in driver.calls if name.endswith("PerMultiprocessor")]
    assert asked == [(256, 0), (256, 100_000)]
    for limits in driver.devices:
        limits[120] = 0
    assert kernel.occupancy(256).max_cluster is None
    assert driver.stack == []


def test_occupancy_of_what_is_none(driver):
    kernel = driver.kernel()
    with pytest.raises(ValueError, match="block must be at least 1"):
        kernel.occupancy(0)
    for block in ("x", None, 1.5):
        with pytest.raises(TypeError, match="block must be an int"):
            kernel.occupancy(block)
    with pytest.raises(TypeError, match="shared_memory must be"):
        kernel.occupancy(1, -1)
    with pytest.raises(TypeError, match="cluster must be an int"):
        kernel.occupancy(1, cluster="x")
    with pytest.raises((ValueError, cl.DriverError)):
        kernel.occupancy(1, 300_000)
    with pytest.raises(ValueError, match=r"block \(65536, 65536, 1\) is too large"):
        kernel.occupancy((2**16, 2**16))


def test_occupancy_leaves_launches_as_they_were(driver):
    kernel = driver.kernel(8)
    kernel.occupancy(32, 200_000, cluster=16)
    kernel[1, 1, 200_000](ExchangeArray())
    assert driver.count("cuFuncLoad") == 1
    sets = [args[0] for name, args in driver.calls if name == "cuKernelSetAttribute"]
    assert len(sets) == len(set(sets)) == 2


def test_kernels_of_one_name_share_what_the_driver_knows(driver):
    kernel = driver.kernel(8)
    other = kernel.module.kernel("k", signature="float*")
    assert kernel.handle == other.handle
    kernel[1, 1](None)
    other[1, 1](None)
    assert driver.count("cuFuncLoad") == 1
    with pytest.raises(TypeError):
        other[1, 1](1.0)
    kernel[1, 1](1.0)


def test_launch_and_configure_take_the_same_words(driver):
    kernel = driver.kernel(4)
    words = {
        "grid": (4, 1), "block": 8, "cluster": 2, "preferred_cluster": 4, "shared_memory": 16,
        "stream": driver.make_stream(), "cooperative": True, "programmatic": True, "priority": 1,
    }  # fmt: skip
    kernel.launch(1, **words)
    kernel.configure(**words)(1)
    first, second = driver.launches
    assert first == second
    with pytest.raises(TypeError):
        kernel.launch(1, gird=1, **words)
