"""Copies into arrays that are there, parts of arrays, constants, memory of other kinds."""

import gc

import ml_dtypes
import numpy as np
import pytest

import culaunch as cl

KERNEL = """
extern "C" __global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
"""


@pytest.fixture(scope="module")
def image():
    return cl.compile(KERNEL, arch="compute_80")


@pytest.fixture
def twice(image, culaunch_driver):
    return cl.load(image)["twice"]


# ---- on both drivers


def test_into_an_array_and_out_of_it(culaunch_driver):
    array = cl.empty((3, 4))
    assert array.dtype == np.float32
    source = np.arange(12, dtype="f4").reshape(3, 4)
    array.copy_from(source)
    array.copy_from(np.asfortranarray(source))
    target = np.zeros((3, 4), "f4")
    array.copy_to(target)
    np.testing.assert_array_equal(target, source)
    other = cl.zeros(like=array)
    other.copy_from(array)
    array.copy_to(other)
    np.testing.assert_array_equal(other.numpy(), source)
    cl.empty(3, "f8").copy_from([1.0, 2.0, 3.0])


@pytest.mark.slow
@pytest.mark.memory
def test_parts_share_the_memory(twice):
    array = cl.to_device(np.arange(24, dtype="f4").reshape(6, 4))
    assert len(array) == 6
    part = array[2:4]
    assert (part.shape, part.address) == ((2, 4), array.address + 32)
    twice[1, 32](part, 8)
    twice[1, 32](array[-1], 4)
    wanted = np.arange(24, dtype="f4").reshape(6, 4)
    wanted[2:4] *= 2
    wanted[-1] *= 2
    np.testing.assert_array_equal(array.numpy(), wanted)
    np.testing.assert_array_equal([row.numpy() for row in array], wanted)
    assert array[4:2].shape == (0, 4)
    assert array[1][1].shape == ()
    assert array[1][1].numpy() == 5
    last = array[-1:]
    del array, part
    gc.collect()
    np.testing.assert_array_equal(last.numpy(), wanted[-1:])


def test_views(culaunch_driver):
    array = cl.to_device(np.arange(6, dtype="i4").reshape(2, 3))
    assert array.view(shape=(3, -1)).numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert array.view("u4").shape == (2, 3)
    assert array.view("u1").shape == (24,)
    assert array.view("f8", 3).shape == (3,)
    assert array.view(ml_dtypes.bfloat16, (4, 3)).dtype.name == "bfloat16"
    for arguments in [("f4", 5), ("c16",), (None, (-1, -1)), (None, (4, -1)), (None, (-2, -3))]:
        with pytest.raises(ValueError, match="must give 24 bytes"):
            array.view(*arguments)
    with pytest.raises(TypeError):
        array.view("S4")


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("?", True), ("i1", -3), ("u2", 65535), ("f2", 1.5), ("f4", -0.1), ("i8", -(2**40)),
     ("f8", 1e300), ("c8", 1 + 2j), ("c16", 1e-300 - 2j), (ml_dtypes.bfloat16, 3.0), ("f4", 2)],
)  # fmt: skip
def test_fill(culaunch_driver, dtype, value):
    array = cl.empty((5, 3), dtype)
    array.fill(value)
    np.testing.assert_array_equal(array.numpy(), np.full((5, 3), value, dtype))
    array[1:2].fill(array.dtype.type(0))
    wanted = np.full((5, 3), value, dtype)
    wanted[1] = 0
    np.testing.assert_array_equal(array.numpy(), wanted)


def test_zeros(culaunch_driver):
    assert not cl.zeros((2, 3), "i2").numpy().any()
    assert cl.zeros(0).shape == (0,)
    like = cl.to_device(np.ones((2, 5), "u2"))
    for made in (cl.zeros(like=like), cl.zeros(like=np.ones((2, 5), "u2"))):
        assert (made.shape, made.dtype) == ((2, 5), np.uint16)
    assert cl.empty(3, like=like).dtype == np.uint16
    assert cl.empty(dtype="f8", like=like).shape == (2, 5)
    torch = pytest.importorskip("torch")
    assert cl.empty(like=torch.zeros(4, dtype=torch.bfloat16)[:2]).shape == (2,)


def test_in_a_stream(twice):
    stream = cl.Stream()
    host, back = cl.pinned(1000), cl.pinned((10, 100))
    host[:] = np.arange(1000)
    array = cl.empty(1000, stream=stream)
    array.copy_from(host, stream)
    twice[4, 256, 0, stream](array, 1000)
    array.view(shape=(10, 100)).copy_to(back, stream)
    array.fill(1, stream)
    stream.synchronize()
    np.testing.assert_array_equal(back.reshape(-1), 2 * np.arange(1000, dtype="f4"))
    assert (array.numpy(stream) == 1).all()
    assert (cl.zeros(100, stream=stream).numpy(stream) == 0).all()


@pytest.mark.slow
@pytest.mark.memory
def test_pinned_memory_lives_as_long_as_its_views(culaunch_driver):
    view = cl.pinned((4, 5), "i2")[2:, ::2]
    gc.collect()
    view[...] = 7
    assert view.shape == (2, 3)
    assert (view == 7).all()
    assert cl.pinned(0).shape == (0,)
    assert cl.pinned(3, ml_dtypes.bfloat16).dtype.name == "bfloat16"


@pytest.mark.slow
def test_managed_memory(twice):
    array = cl.managed(100)
    array.on_host()[:] = np.arange(100)
    twice[1, 128](array, 100)
    cl.synchronize()
    np.testing.assert_array_equal(array.on_host(), 2 * np.arange(100))
    assert array.on_host().flags.writeable
    host = array[10:12].on_host()
    del array
    gc.collect()
    assert host.tolist() == [20, 22]
    assert cl.managed((0, 3)).shape == (0, 3)


def test_tensors_of_the_host(culaunch_driver):
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.int16):
        source = torch.arange(12).reshape(3, 4).to(dtype)
        array = cl.empty(like=source)
        array.copy_from(source)
        target = torch.zeros_like(source)
        array.copy_to(target)
        assert torch.equal(source, target)
        turned = cl.empty((4, 3), array.dtype)
        turned.copy_from(source.T)
        assert (turned.numpy() == array.numpy().T).all()


# ---- what is refused


def test_what_does_not_go_together(culaunch_driver):
    array = cl.zeros((2, 3))
    for source in (np.zeros(6, "f4"), np.zeros((2, 3)), cl.zeros(6), cl.zeros((2, 3), "i4")):
        with pytest.raises(ValueError, match=r"source must have the array's shape \(2, 3\) and"):
            array.copy_from(source)
        with pytest.raises(ValueError, match=r"target must have the array's shape \(2, 3\) and"):
            array.copy_to(source)
    frozen = np.zeros((2, 3), "f4")
    frozen.flags.writeable = False
    for target in (frozen, np.zeros((3, 2), "f4").T):
        with pytest.raises(ValueError, match="writable, and contiguous in C order"):
            array.copy_to(target)
    with pytest.raises(TypeError, match="target must be an array of NumPy"):
        array.copy_to([[0.0] * 3] * 2)
    with pytest.raises(ValueError, match="must have no step"):
        array[::2]
    with pytest.raises(IndexError, match="out of range for 2 rows"):
        array[2]
    for index in ((0, 1), None, "0", 1.5, ...):
        with pytest.raises(TypeError, match=r"along its first axis|must be an int"):
            array[index]
    with pytest.raises(TypeError, match="at least 1 dimension"):
        len(cl.zeros(()))
    with pytest.raises(TypeError, match="shape must be"):
        cl.empty()


@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [("i1", 128, OverflowError), ("u4", -1, OverflowError), ("i4", 1.5, TypeError),
     ("f4", "x", TypeError), ("f4", None, TypeError), ("f4", [1, 2], TypeError),
     ("f4", 1j, TypeError), ("f4", 1e300, OverflowError), ("f2", -70000, OverflowError)],
)  # fmt: skip
def test_what_no_element_is(culaunch_driver, dtype, value, error):
    with pytest.raises(error, match="value must"):
        cl.zeros(3, dtype).fill(value)


def test_infinity_is_an_element(culaunch_driver):
    array = cl.zeros(2)
    array.fill(-np.inf)
    assert np.isneginf(array.numpy()).all()


# ---- what the driver is asked


def test_the_driver_is_asked_for_no_more_than_the_copy(driver):
    stream, array = cl.Stream(), cl.empty((4, 8))
    driver.calls.clear()
    array.copy_from(np.zeros((4, 8), "f4"), stream)
    array[1:3].copy_to(cl.pinned((2, 8)), stream)
    array[0].copy_from(array[1], stream)
    array.fill(0, stream)
    array.fill(1.5, stream)
    names = [name for name, _ in driver.calls if "Memcpy" in name or "Memset" in name]
    assert names == ["cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyAsync", "cuMemsetD8Async",
                     "cuMemsetD32Async"]  # fmt: skip
    assert driver.count("cuStreamSynchronize") == 0
    array.copy_from(np.zeros((4, 8), "f4"))
    array[0].copy_from(array[1])
    assert driver.count("cuStreamSynchronize") == 2


def test_memory_of_other_kinds(driver):
    array = cl.managed((2, 3), device=1)
    assert array.__dlpack_device__() == (13, 1)
    assert driver.bytes_of(array, 8, "float*") == array.address.to_bytes(8, "little")
    pinned = cl.pinned(5)
    assert list(driver.pinned) == [pinned.ctypes.data]
    with pytest.raises(ValueError, match="the host can read only managed memory"):
        cl.empty(3).on_host()
    del array, pinned
    gc.collect()
    assert driver.pinned == {}
    assert driver.memory == {}
    stream = cl.Stream()
    cl.empty(5, stream=stream)
    asked = [arguments[2] for name, arguments in driver.calls if name == "cuMemAllocAsync"]
    assert asked == [stream.handle]
    assert driver.memory == {}


def test_what_fails_makes_nothing(driver):
    driver.fail("cuMemHostAlloc", 2)
    with pytest.raises(cl.DriverError, match="allocating pinned memory failed"):
        cl.pinned(3)
    driver.fail("cuMemAllocManaged", 2)
    with pytest.raises(cl.DriverError, match="allocating managed memory failed"):
        cl.managed(3)
    for shape in (-1, 1 << 61, (1 << 40, 1 << 40)):
        for make in (cl.pinned, cl.managed):
            with pytest.raises(ValueError, match="no negative size"):
                make(shape)


def test_a_driver_without_a_function_says_so(install):
    driver = install(instead={"cuMemHostAlloc": 0})
    with pytest.raises(cl.DriverError, match="recorder, has no cuMemHostAlloc") as caught:
        cl.pinned(3)
    assert caught.value.name == "CUDA_ERROR_NOT_SUPPORTED"
    assert driver.stack == []
