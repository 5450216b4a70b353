"""A kernel that is given a view reaches what it is a view of, as on a GPU, unless a check is on."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_internals import options_from_text

import culaunch as cl
from culaunch import testing

REACH = """.version 8.0
.target sm_80
.address_size 64
.visible .entry reach(.param .u64 .ptr.global x, .param .s32 i, .param .u64 .ptr.global out) {
  .reg .b64 %x, %o; .reg .b32 %i, %v;
  ld.param.u64 %x, [x]; ld.param.s32 %i, [i]; ld.param.u64 %o, [out];
  mad.wide.s32 %x, %i, 4, %x; ld.global.u32 %v, [%x]; st.global.u32 [%o], %v; ret;
}
"""


@pytest.fixture(autouse=True)
def emulator():
    with testing.use_driver("emulator"):
        yield


@pytest.fixture(params=["launch", "function"])
def reach(request):
    """Read an element of an array, at a distance from its first one."""
    kernel = cl.load(REACH.encode())["reach"]
    if request.param == "launch":
        return lambda x, i, out: kernel[1, 1](x, i, out)

    @cl.function
    def call(x, i: int, out):
        kernel[1, 1](x, i, out)

    return call


@pytest.fixture(params=["numpy", pytest.param("torch", marks=pytest.mark.needs("torch"))])
def arange(request):
    """Make an array of the numbers from 0, and one of a single element."""
    if request.param == "numpy":
        return lambda count: np.arange(count, dtype=np.int32)
    import torch

    return lambda count: torch.arange(count, dtype=torch.int32)


def views(x):
    """Views of 64 elements, with where each begins, its last element, and one that it lacks."""
    table = x.reshape(8, 8)
    yield x[:32], 0, 31, 32
    yield table[:, :4], 0, 59, 60
    yield table[2], 16, 7, 8
    yield x[8:16], 8, 7, -1
    yield x[8:16][2:4], 10, 1, 53


def test_a_view_reaches_all_that_it_is_a_view_of(reach, arange):
    x, out = arange(64), arange(1)
    for view, begin, last, beyond in views(x):
        for i in (last, beyond, last):
            reach(view, i, out)
            assert int(out[0]) == begin + i
        for i in (-begin - 1, 64 - begin):
            with pytest.raises(cl.DriverError, match="outside every allocation"):
                reach(view, i, out)
            testing.reset_emulator()


def test_the_check_names_the_view(reach, arange):
    x, out = arange(64), arange(1)
    places = ("0 bytes after the end of", "0 bytes after the end of", "0 bytes after the end of")
    places += ("4 bytes before", "204 bytes after the end of")
    for (view, begin, last, beyond), place in zip(views(x), places, strict=True):
        with testing.emulator_options(check_views=True):
            reach(view, last, out)
            assert int(out[0]) == begin + last
            with pytest.raises(cl.DriverError) as caught:
                reach(view, beyond, out)
            testing.reset_emulator()
            size = 4 * (last + 1)
            assert (
                f"{place} argument 0, a view of {size} bytes, and inside the array of 256 bytes at "
            ) in str(caught.value)
            assert "check_views" in str(caught.value)
            with pytest.raises(cl.DriverError, match="outside every allocation"):
                reach(view, 64 - begin, out)
        testing.reset_emulator()
        reach(view, beyond, out)
        assert int(out[0]) == begin + beyond


def test_the_environment_turns_the_check_on():
    assert options_from_text("check_views").check_views
    assert not options_from_text("").check_views


def test_what_a_read_only_view_is_of_is_read_and_not_written():
    """Nothing says what the kernel writes."""
    kernel = cl.load(REACH.replace(".ptr.global", "").encode())["reach"]
    weights = np.arange(64, dtype=np.int32)
    weights.flags.writeable = False
    out = np.zeros(1, np.int32)
    for view in (weights[8:16], weights.view()[8:16]):
        kernel[1, 1](view, 20, out)
        assert out[0] == 28
        with pytest.raises(cl.DriverError, match="in argument 2, which is a read-only array"):
            kernel[1, 1](out, 0, view)
        testing.reset_emulator()
    assert np.array_equal(weights, np.arange(64))


def test_an_array_over_memory_of_something_else_is_known_as_it_is():
    kernel = cl.load(REACH.encode())["reach"]
    memory, out = bytearray(256), np.zeros(1, np.int32)
    half = np.frombuffer(memory, np.int32, 32)
    kernel[1, 1](half[4:8], 27, out)
    with pytest.raises(cl.DriverError, match="outside every allocation"):
        kernel[1, 1](half[4:8], 28, out)
    testing.reset_emulator()


@pytest.mark.needs("torch")
def test_strides_of_0_and_tensors_of_subclasses():
    """Programs that gather give a stride of 0 to a dimension, and the kernel other strides."""
    import torch

    kernel = cl.load(REACH.encode())["reach"]
    x, out = torch.arange(64, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    for array in (x.as_strided((8, 8), (8, 0)), torch.nn.Parameter(x[:8], requires_grad=False)):
        kernel[1, 1](array, 63, out)
        assert int(out) == 63
    kernel[1, 1](x[8:].as_strided((4, 8), (8, 0)), 47, out)
    assert int(out) == 55


@pytest.mark.needs("torch", "triton")
def test_libraries_pass_views_to_triton():
    """`block_pid_map[:, :n]` with its padding filled; `lora_b_weight[0]` as the base of all."""
    import torch
    from view_kernels import fill_rows, last_of

    from culaunch.triton import native

    fill, last = native(fill_rows), native(last_of)
    block_pid_map = torch.zeros((4, 16), dtype=torch.int32)
    weights, out = torch.arange(96, dtype=torch.int32).view(3, 32), torch.zeros(3).int()
    for _ in range(3):
        block_pid_map.zero_()
        fill[(4,)](block_pid_map[:, :5], block_pid_map.stride(0), B=16)
        assert block_pid_map.eq(-1).all()
        last[(3,)](weights[0], out.zero_(), 32)
        assert out.tolist() == [31, 63, 95]
    with testing.emulator_options(check_views=True):
        with pytest.raises(cl.DriverError, match="of argument 0, a view of 212 bytes, and inside"):
            fill[(4,)](block_pid_map[:, :5], block_pid_map.stride(0), B=16)
        testing.reset_emulator()
        with pytest.raises(cl.DriverError, match="of argument 0, a view of 128 bytes, and inside"):
            last[(3,)](weights[0], out, 32)
        testing.reset_emulator()
