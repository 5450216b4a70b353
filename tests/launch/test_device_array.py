"""Arrays for users with only NumPy: made, copied, handed over, freed."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import culaunch as cl

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]


@SHARED
@given(
    array=arrays.arrays(
        st.sampled_from(DTYPES), arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    )
)
def test_there_and_back(driver, array):
    for source in (array, np.asfortranarray(array), array[..., ::-1] if array.ndim else array):
        there = cl.to_device(source)
        assert (there.shape, there.dtype) == (source.shape, source.dtype)
        assert (there.ndim, there.size, there.nbytes) == (source.ndim, source.size, source.nbytes)
        back = there.numpy()
        assert back.dtype == source.dtype
        assert back.tobytes() == source.tobytes()


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16])
def test_sixteen_bit_floats(driver, kind):
    source = np.arange(10).astype(kind)
    there = cl.to_device(source)
    np.testing.assert_array_equal(there.numpy(), source)
    spelling = "__nv_bfloat16*" if kind is ml_dtypes.bfloat16 else "half*"
    assert driver.bytes_of(there, 8, spelling) == there.address.to_bytes(8, "little")
    with pytest.raises(TypeError, match="must be an array of float32"):
        driver.bytes_of(there, 8, "float*")


def test_what_makes_an_array(driver):
    assert cl.to_device([[1, 2], [3, 4]]).shape == (2, 2)
    assert cl.to_device(5.0).shape == ()
    assert cl.to_device(range(3)).numpy().tolist() == [0, 1, 2]
    array = cl.empty(3, "f4")
    assert (array.shape, array.dtype, array.device) == ((3,), np.dtype("f4"), 0)
    assert cl.empty((2, 3), np.int8).nbytes == 6
    assert cl.empty([2, 3], float).dtype == np.float64
    assert (
        repr(cl.empty((2, 3), "i4", device=1)) == "<culaunch.DeviceArray (2, 3) int32 on device 1>"
    )


def test_devices(driver):
    for device in (0, 1):
        array = cl.to_device(np.ones(3), device)
        assert array.device == device
        assert driver.memory[array.address][0] == device
        driver.kernel(8)[1, 1](array)
        assert driver.last.device == device
    with cl.driver.Device(1):
        assert cl.empty(3, "f4").device == 1
    assert driver.stack == []


def test_copies_run_in_the_stream_that_is_given(driver):
    stream = cl.Stream()
    array = cl.to_device(np.ones(3), stream=stream)
    array.numpy(stream)
    array.numpy(stream.handle)
    copies = [args[3] for name, args in driver.calls if name.startswith("cuMemcpy")]
    assert copies == [stream.handle] * 3
    waited = [args[0] for name, args in driver.calls if name == "cuStreamSynchronize"]
    assert waited == [stream.handle] * 3


@pytest.mark.slow
@pytest.mark.memory
def test_memory_is_freed_on_its_device(driver):
    array = cl.empty(1000, "f8", device=1)
    assert len(driver.memory) == 1
    reference = weakref.ref(array)
    launcher = driver.kernel(8)[1, 1]
    launcher(array)
    del array
    gc.collect()
    assert reference() is None
    assert driver.memory == {}
    assert driver.stack == []


@pytest.mark.slow
@pytest.mark.memory
def test_many_arrays_come_and_go(driver):
    driver.recording = False
    for i in range(3000):
        array = cl.empty((i % 5, 3), "f4")
        array.note = [array]  # a cycle, and an attribute of the subclass's own
        if i % 100 == 0:
            gc.collect()
    del array
    gc.collect()
    assert driver.memory == {}


def test_an_empty_array_needs_no_memory(driver):
    array = cl.to_device(np.zeros((0, 3)))
    assert (array.address, array.nbytes) == (0, 0)
    assert array.numpy().shape == (0, 3)
    assert driver.count("cuMemAlloc") == 0
    assert driver.bytes_of(array, 8) == bytes(8)


def test_too_much_memory(driver):
    with pytest.raises(
        cl.DriverError, match=r"allocating 8589934592 bytes on device 0 failed: CUDA"
    ):
        cl.empty(1 << 33, "u1")
    for shape in ((1 << 62, 1 << 62), (-1,), (2, -3), 1 << 80):
        with pytest.raises((ValueError, OverflowError)):
            cl.empty(shape, "f8")
    for shape in ("a", None, 1.5, (1.5,), ("a",)):
        with pytest.raises(TypeError):
            cl.empty(shape, "f4")
    assert driver.memory == {}


@pytest.mark.parametrize("dtype", ["O", "S3", "U2", "M8[s]", "V4", "g", "G"])
def test_what_no_kernel_computes_with(driver, dtype):
    with pytest.raises(TypeError, match="dtype must be a bool, an integer, a float, a complex"):
        cl.empty(3, dtype)


@pytest.mark.slow
@pytest.mark.memory
def test_a_copy_that_fails(driver):
    driver.fail("cuMemcpyHtoDAsync", 700)
    with pytest.raises(cl.DriverError, match="copying to the device failed: CUDA_ERROR_ILLEGAL"):
        cl.to_device(np.ones(3))
    array = cl.to_device(np.ones(3))
    driver.fail("cuStreamSynchronize", 719)
    with pytest.raises(cl.DriverError, match="copying from the device failed: CUDA_ERROR_LAUNCH_F"):
        array.numpy()
    gc.collect()
    assert len(driver.memory) == 1


# ---- handed over


@pytest.mark.slow
@pytest.mark.memory
def test_dlpack_on_the_host(host_driver):
    array = cl.to_device(np.arange(6, dtype="f4").reshape(2, 3))
    assert array.__dlpack_device__() == (1, 0)
    view = np.from_dlpack(array)
    np.testing.assert_array_equal(view, [[0, 1, 2], [3, 4, 5]])
    view[0, 0] = 7
    assert array.numpy()[0, 0] == 7
    address = array.address
    del array
    gc.collect()
    assert address in host_driver.memory  # the view keeps it
    del view
    gc.collect()
    assert host_driver.memory == {}


@pytest.mark.slow
@pytest.mark.memory
@pytest.mark.needs("torch")
def test_torch_takes_it(host_driver):
    import torch

    array = cl.to_device(np.arange(6, dtype="f4"))
    tensor = torch.from_dlpack(array)
    tensor += 1
    assert array.numpy().tolist() == [1, 2, 3, 4, 5, 6]
    del array
    gc.collect()
    assert tensor.tolist() == [1, 2, 3, 4, 5, 6]
    del tensor
    gc.collect()
    assert host_driver.memory == {}


@pytest.mark.slow
@pytest.mark.memory
def test_capsules_that_nobody_takes_free_what_they_hold(host_driver):
    for version in (None, (0, 8), (1, 0), (1, 1), (2, 0)):
        array = cl.to_device(np.ones(3))
        capsule = array.__dlpack__(max_version=version)
        old = version is None or version[0] < 1
        assert ('"dltensor"' if old else '"dltensor_versioned"') in repr(capsule)
        del array
        gc.collect()
        assert len(host_driver.memory) == 1
        del capsule
        gc.collect()
        assert host_driver.memory == {}


def test_no_copies_and_no_other_device(driver):
    array = cl.to_device(np.ones(3))
    for options in ({"copy": True}, {"dl_device": (1, 0)}, {"dl_device": (2, 1)}):
        with pytest.raises(BufferError, match="exported only without a copy"):
            array.__dlpack__(**options)
    array.__dlpack__(copy=False, dl_device=(2, 0), stream=5)


def test_the_array_interfaces(driver, host_driver):
    assert not hasattr(cl.to_device(np.ones(3)), "__cuda_array_interface__")
    np.testing.assert_array_equal(np.asarray(cl.to_device(np.ones(3))), np.ones(3))
    with pytest.raises(ValueError, match="copy=False is not possible"):
        np.asarray(cl.to_device(np.ones(3)), copy=False)


def test_the_cuda_array_interface(driver):
    array = cl.to_device(np.ones((2, 3), "i2"))
    assert array.__cuda_array_interface__ == {
        "shape": (2, 3), "typestr": "<i2", "data": (array.address, False), "strides": None,
        "stream": None, "version": 3,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.memory
def test_exports_and_launches_in_a_loop(host_driver):
    host_driver.recording = False
    array = cl.to_device(np.ones(3))
    launcher = host_driver.kernel(8)[1, 1]
    for _ in range(2000):
        launcher(array)
        np.from_dlpack(array)
        array.__dlpack__()
    del array, launcher
    gc.collect()
    assert host_driver.memory == {}
