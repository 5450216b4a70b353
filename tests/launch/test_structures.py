"""Structured arrays on a device: the same tests on the emulator, strict or not, and on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import culaunch as cl
from culaunch import testing

POINT = np.dtype([("x", "f4"), ("id", "i4"), ("tail", "u1", 3)], align=True)
PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry move(.param .u64 points, .param .f32 by) {
.reg .b64 %p; .reg .b32 %i; .reg .f32 %x, %by;
ld.param.u64 %p, [points]; ld.param.f32 %by, [by]; mov.u32 %i, %tid.x;
mad.wide.u32 %p, %i, 12, %p;
ld.global.f32 %x, [%p]; add.f32 %x, %x, %by; st.global.f32 [%p], %x;
st.global.u32 [%p+4], %i; st.global.u8 [%p+8], %i; ret;
}
"""


@pytest.fixture(params=[None, True], ids=["", "strict"])
def driver(request, culaunch_driver):
    with testing.use_driver(culaunch_driver, strict=request.param):
        yield


@pytest.fixture
def move(driver):
    # One that says what it points to, and one that does not.
    module = cl.load(PTX)
    return module.kernel("move", signature="Point*, float"), module["move"]


@pytest.fixture
def points():
    made = np.zeros(5, POINT)
    made["x"], made["tail"] = np.arange(5), 7
    return made


def moved(points, by):
    made = points.copy()
    made["x"] += by
    made["id"] = made["tail"][:, 0] = np.arange(len(points))
    return made


def test_a_structured_array_has_a_way_to_a_device(move, points):
    for kernel in move:
        on_device = cl.to_device(points)
        assert (on_device.shape, on_device.dtype, on_device.nbytes) == ((5,), POINT, 60)
        kernel[1, 5](on_device, 2.5)
        result = on_device.numpy()
        assert result.dtype == POINT
        assert np.array_equal(result, moved(points, np.float32(2.5)))


def test_parts_and_copies_have_its_structures(move, points):
    array = cl.zeros((2, 5), POINT)
    assert not np.any(array.numpy()["x"])
    array[1].copy_from(points)
    move[0][1, 3](array[1][2:], 1.0)
    expected = points.copy()
    expected[2:] = moved(points[2:], np.float32(1))
    assert np.array_equal(array[1].numpy(), expected)
    other = cl.empty(like=array)
    assert (other.shape, other.dtype) == ((2, 5), POINT)
    other.copy_from(array)
    target = np.empty((2, 5), POINT)
    other.copy_to(target)
    assert np.array_equal(target[1], expected)
    assert array.view("u1").shape == (120,)
    assert array.view("u1").view(POINT, (2, 5)).dtype == POINT
    raw = cl.to_device(points.view("u1"))
    with pytest.raises(ValueError, match="source must have the array's shape"):
        other[0].copy_from(raw)
    with pytest.raises(ValueError, match="source must have the array's shape"):
        raw.copy_from(cl.to_device(points))


def test_what_takes_numbers_refuses_structures(driver, points):
    array = cl.to_device(points)
    with pytest.raises(TypeError, match=r"fill needs an array of numbers.*view\('u1'\)\.fill\(0\)"):
        array.fill(0)
    module = cl.load(PTX)
    with pytest.raises(TypeError, match="must be an array of float32"):
        module.kernel("move", signature="float*, float")[1, 1](array, 1.0)


def test_dtypes_that_no_kernel_reads(driver):
    objects = np.dtype([("a", "O")])
    with pytest.raises(TypeError, match="a structured dtype must have no Python objects"):
        cl.empty(2, objects)
    with pytest.raises(TypeError, match="1 to 65535 bytes"):
        cl.empty(2, np.dtype([("a", "u1", 65_536)]))
    with pytest.raises(TypeError, match="1 to 65535 bytes"):
        cl.empty(2, np.dtype([]))
    with pytest.raises(ValueError, match="byte order of this machine"):
        cl.empty(2, np.dtype([("a", ">f4")]))
    for name in "gG":
        with pytest.raises(
            TypeError, match=r"got (float|complex)\d+\): CUDA has floats of at most"
        ):
            cl.empty(3, name)
        with pytest.raises(TypeError, match="CUDA has floats of at most 8 bytes"):
            cl.to_device(np.zeros(3, name))


@pytest.mark.needs("torch")
def test_a_view_of_it_in_a_framework_is_refused(driver, points):
    """DLPack has no structures: their bytes are lanes, which no framework has."""
    import torch

    with pytest.raises((RuntimeError, ValueError, BufferError, AssertionError)):
        torch.from_dlpack(cl.to_device(points))
