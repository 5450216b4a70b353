"""Arrays of NumPy and torch as arguments, where the CPU is the device."""

import ml_dtypes
import numpy as np
import pytest
from fake_arrays import (
    address_of,
)

POINTER = "float*"


DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_arrays(host_driver, dtype):
    array = np.zeros((4, 6), dtype)
    for view in (array, array[1:], array[:, ::2], array[::-1], array.T, array[2, 3:], array[:0]):
        assert address_of(host_driver.bytes_of(view, 8)) == view.ctypes.data


def test_numpy_s_element_types_are_compared(host_driver):
    assert host_driver.bytes_of(np.zeros(3, "f4"), 8, POINTER)
    with pytest.raises(TypeError, match=r"array of float32 \(got numpy\.ndarray of float64"):
        host_driver.bytes_of(np.zeros(3), 8, POINTER)
    with pytest.raises(TypeError, match=r"got numpy\.ndarray of int32"):
        host_driver.bytes_of(np.zeros(3, "i4"), 8, POINTER)


def test_a_read_only_numpy_array(host_driver):
    array = np.arange(4.0)
    array.flags.writeable = False
    assert address_of(host_driver.bytes_of(array, 8)) == array.ctypes.data
    assert address_of(host_driver.bytes_of(np.broadcast_to(array, (3, 4)), 8)) == array.ctypes.data


@pytest.mark.parametrize(
    "kind", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, [("x", "f4")], "M8[s]"]
)
def test_numpy_arrays_that_dlpack_does_not_know(host_driver, kind):
    array = np.zeros(4, kind)
    assert address_of(host_driver.bytes_of(array, 8)) == array.ctypes.data
    assert address_of(host_driver.bytes_of(array, 8, "void*")) == array.ctypes.data
    assert address_of(host_driver.bytes_of(array, 8, POINTER)) == array.ctypes.data


def test_numpy_numbers_in_another_byte_order_are_refused(host_driver):
    with pytest.raises((TypeError, ValueError), match=r"argument 0: .*byte order"):
        host_driver.bytes_of(np.zeros(4, ">f4"), 8, POINTER)


def test_a_zero_dimensional_array_is_an_array(host_driver):
    array = np.array(3.0, "f4")
    assert address_of(host_driver.bytes_of(array, 8, POINTER)) == array.ctypes.data
    with pytest.raises(TypeError):
        host_driver.bytes_of(array, 4, "float")


def test_a_subclass_of_a_numpy_array(host_driver):
    array = np.zeros(3, "f4").view(type("Sub", (np.ndarray,), {}))
    assert address_of(host_driver.bytes_of(array, 8)) == array.ctypes.data


def test_only_the_array_interface(host_driver):
    class Interface:
        def __init__(self, array):
            self.array = array
            self.__array_interface__ = array.__array_interface__

        __array_interface__ = None

    array = np.zeros(3, "f4")
    assert address_of(host_driver.bytes_of(Interface(array), 8, POINTER)) == array.ctypes.data
    with pytest.raises(TypeError, match="must be an array of int32"):
        host_driver.bytes_of(Interface(array), 8, "int*")


@pytest.mark.slow
@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    "dtype", ["uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool"]
)
def test_torch_tensors(host_driver, dtype):
    import torch

    tensor = torch.zeros(4, 6).to(getattr(torch, dtype))
    views = (tensor, tensor[1:], tensor[:, ::2], tensor.t(), tensor[2, 3:], tensor[:0])
    for view in views:
        assert address_of(host_driver.bytes_of(view, 8)) == view.data_ptr()
    spelling = {"float32": "float*", "bfloat16": "__nv_bfloat16*", "float16": "half*"}.get(dtype)
    if spelling:
        assert address_of(host_driver.bytes_of(tensor, 8, spelling)) == tensor.data_ptr()
        with pytest.raises(TypeError, match=rf"got torch\.Tensor of b?float{dtype[-2:]}"):
            host_driver.bytes_of(tensor, 8, "int*")


@pytest.mark.needs("torch")
def test_torch_tensors_with_gradients(host_driver):
    import torch

    leaf = torch.zeros(4, requires_grad=True)
    parameter = torch.nn.Parameter(torch.zeros(4))
    for tensor in (leaf, parameter, leaf * 2, torch.nn.Linear(2, 2).weight, leaf.detach()):
        assert address_of(host_driver.bytes_of(tensor, 8, POINTER)) == tensor.data_ptr()


@pytest.mark.needs("torch")
def test_a_torch_cpu_tensor_is_no_cuda_memory(driver):
    import torch

    with pytest.raises(ValueError, match=r"got torch\.Tensor in the CPU's memory"):
        driver.bytes_of(torch.zeros(3), 8)
