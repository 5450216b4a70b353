"""``peer``: another device's memory as an argument of a kernel on this one."""

import pytest

import culaunch as cl

PRIMARY = 0xC0000


def test_a_kernel_takes_what_its_device_reaches(driver):
    kernel = driver.kernel(8, 8)
    mine, theirs = cl.empty(16, "f4", device=0), cl.empty(16, "f4", device=1)
    with pytest.raises(ValueError, match="all arrays of a call must be on one device"):
        kernel[1, 32](mine, theirs)
    here = cl.arguments.peer_array(theirs, 0)
    assert (here.device, here.address, here.shape) == (0, theirs.address, (16,))
    assert here.dtype == theirs.dtype
    for current in (0, 1):
        with cl.driver.Device(current):
            kernel[1, 32](mine, here)
        assert driver.last.device == 0, "whatever device is current"
        assert driver.last.arguments[1] == theirs.address.to_bytes(8, "little")
    assert driver.peers == {(PRIMARY, PRIMARY + 1)}
    # Once more: it is on already, which is no error.
    assert cl.arguments.peer_array(theirs, 0).address == theirs.address
    assert driver.count("cuCtxEnablePeerAccess") == 2
    assert driver.stack == []


def test_the_other_way_round(driver):
    mine = cl.empty(4, "f4", device=0)
    with cl.driver.Device(1):
        assert cl.arguments.peer_array(mine).device == 1
    assert driver.peers == {(PRIMARY + 1, PRIMARY)}


def test_its_own_memory_needs_nothing(driver):
    mine = cl.empty(4, "f4", device=0)
    assert cl.arguments.peer_array(mine, 0).address == mine.address
    assert driver.count("cuDeviceCanAccessPeer") == 0


def test_it_keeps_the_array_alive(driver):
    address = (here := cl.arguments.peer_array(cl.empty(4, "f4", device=1), 0)).address
    assert address in driver.memory
    del here
    assert address not in driver.memory


def test_devices_without_a_connection(driver):
    driver.apart.add((0, 1))
    with pytest.raises(cl.DriverError, match="device 0 cannot reach the memory of device 1") as one:
        cl.arguments.peer_array(cl.empty(4, "f4", device=1), 0)
    assert one.value.name == "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"
    assert driver.peers == set()


def test_the_driver_refuses(driver):
    driver.fail("cuCtxEnablePeerAccess", 2)
    with pytest.raises(cl.DriverError, match="turning on the access to a peer's memory"):
        cl.arguments.peer_array(cl.empty(4, "f4", device=1), 0)


def test_a_driver_without_these_functions(install):
    install(instead={"cuCtxEnablePeerAccess": 0})
    with pytest.raises(cl.DriverError, match="turning on the access"):
        cl.arguments.peer_array(cl.empty(4, "f4", device=1), 0)


def test_mistakes(driver):
    with pytest.raises(TypeError, match="array"):
        cl.arguments.peer_array(3)
    with pytest.raises(ValueError, match="there is no device 7"):
        cl.arguments.peer_array(cl.empty(4, "f4", device=1), 7)
    with pytest.raises(TypeError, match="device must be an int"):
        cl.arguments.peer_array(cl.empty(4, "f4", device=1), "0")


@pytest.mark.needs("numpy")
def test_what_is_not_contiguous(install):
    import numpy as np

    install(device_types=(1,))
    with pytest.raises(ValueError, match=r"contiguous \(got strides \(8, 2\)"):
        cl.arguments.peer_array(np.zeros((4, 8), np.float32)[:, ::2], 0)
    for flat in (np.zeros((4, 8), np.float32), np.zeros((0, 8))[:, ::2], np.zeros((1, 8))[:, :]):
        assert cl.arguments.peer_array(flat, 0).shape == flat.shape


@pytest.mark.multi_gpu
@pytest.mark.needs("numpy", "nvrtc")
def test_on_two_gpus():
    import numpy as np

    source = """extern "C" __global__ void add(float* y, const float* x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] += x[i];
    }"""
    kernel = cl.load(cl.compile(source))["add"]
    x = cl.to_device(np.arange(1000, dtype=np.float32), device=1)
    y = cl.to_device(np.ones(1000, dtype=np.float32), device=0)
    for current in (0, 1):
        with cl.driver.Device(current):
            kernel[4, 256](y, cl.arguments.peer_array(x, 0), 1000)
    np.testing.assert_array_equal(y.numpy(), 1 + 2 * np.arange(1000, dtype=np.float32))
