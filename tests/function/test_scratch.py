"""Arrays that only a body uses: they share an allocation, and only their addresses show it. On a
recording driver, without the emulator's look at each array."""

import itertools
import struct

import numpy as np
import pytest

import culaunch as cl

SIZES = (3, 100, 0, 64, 1)


@pytest.fixture
def noted(host_driver):
    """A function with five arrays of its own, each passed to a launch; it gives another one."""
    kernel = host_driver.kernel(8, 8)

    @cl.function
    def noted(x, a: int, b: int, c: int, d: int, e: int):
        result = cl.empty_like(x)
        for size in (a, b, c, d, e):
            own = cl.empty((size, 3), "float64", like=x)
            kernel[1, 32](own, result)
        return result

    def addresses(*args):
        before = len(host_driver.launches)
        result = noted(*args)
        launches = host_driver.launches[before:]
        pairs = [tuple(struct.unpack("<Q", one)[0] for one in at.arguments) for at in launches]
        return result, [own for own, _ in pairs], {of_result for _, of_result in pairs}

    noted.addresses = addresses
    return noted


def arrays(torch):
    return [torch.zeros(50), np.zeros(50, "float32")]


@pytest.mark.needs("torch")
@pytest.mark.parametrize("framework", [0, 1])
def test_they_lie_one_behind_the_other_and_do_not_overlap(noted, framework):
    import torch

    x = arrays(torch)[framework]
    for _ in range(3):
        result, own, of_result = noted.addresses(x, *SIZES)
        address = result.data_ptr() if framework == 0 else result.ctypes.data
        assert of_result == {address}
        assert len(set(own)) == len(SIZES)
        shared = [at for at, size in zip(own, SIZES, strict=True) if size]
        steps = [b - a for a, b in itertools.pairwise(shared)]
        assert steps == [256, 2560, 1536]  # their bytes (72, 2400, 1536), to the next 256
        assert not shared[0] <= address < shared[-1] + 24
        assert shared[0] % 16 == 0


@pytest.mark.needs("torch")
def test_their_memory_is_one_tensor_that_goes_with_the_call(noted):
    import torch
    from torch.profiler import ProfilerActivity, profile

    x = torch.zeros(50)
    noted(x, *SIZES)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        kept = noted(x, 1000, 1000, 1000, 1000, 1000)
    sizes = [
        event.extra_fields.alloc_size
        for event in profiled.profiler.kineto_results.experimental_event_tree()
        for event in _with_children(event)
        if type(event.extra_fields).__name__ == "_ExtraFields_Allocation"
    ]
    shared = 5 * -(-24000 // 256) * 256
    assert sorted(sizes) == [-shared, kept.nbytes, shared]


def _with_children(event):
    yield event
    for child in event.children:
        yield from _with_children(child)


def test_zeros_and_views_of_them(host_driver):
    kernel = host_driver.kernel(8, 8, 8)

    @cl.function
    def f(x):
        a = cl.zeros(10, "int32", like=x)
        b = cl.empty((4, 5), "int8", like=x)
        kernel[1, 32](a, b, b[2])
        return x

    x = np.zeros(3, "float32")
    for _ in range(2):
        assert f(x) is x
        a, b, view = (struct.unpack("<Q", one)[0] for one in host_driver.last.arguments)
        assert (b - a, view - b) == (256, 10)
        fills = [args for name, args in host_driver.calls if name == "cuMemsetD8Async"]
        assert fills[-1][:3] == (a, 0, 40)


def test_what_python_sees_is_no_scratch(host_driver):
    """An array that comes back by a view, or goes to a function of another library, is its own."""
    kernel = host_driver.kernel(8, 8, 8)

    @cl.function
    def f(x):
        shown, own, other = (cl.empty(64, "float32", like=x) for _ in range(3))
        kernel[1, 32](shown, own, other)
        return shown[4:]

    x = np.zeros(3, "float32")
    for _ in range(2):
        view = f(x)
        shown, own, other = (struct.unpack("<Q", one)[0] for one in host_driver.last.arguments)
        assert view.ctypes.data == shown + 16
        assert other - own == 256
        assert not own <= shown < other + 256
