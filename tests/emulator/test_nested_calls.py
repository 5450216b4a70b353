"""Calls from within the reading of an argument: each launch knows the arrays that it was given.

Reading a tensor whose sizes are Python runs Python, which may launch on other arrays, and may
change the tensors that were read before. These run under the sanitizers, too.
"""

import pytest

import culaunch as cl
from culaunch import elementwise as ew

pytestmark = pytest.mark.needs("torch")
SOURCE = 'extern "C" __global__ void add(float* a, float* b) { a[threadIdx.x] += b[threadIdx.x]; }'


@pytest.fixture(autouse=True)
def emulator():
    with cl.testing.use_driver("emulator"):
        yield


@pytest.fixture
def slow():
    """Make a tensor of ones whose sizes are Python, which calls a function first, once."""
    import torch

    def make(asked, size=16):
        class Slow(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl
            calls = 0

            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                name = function.__name__
                cls.calls += 1
                if cls.calls == 1:
                    asked()
                if name.startswith("dim"):
                    return 1
                return size if "numel" in name else [1] if "stride" in name else [size]

        ones = torch.ones(size)
        return torch.Tensor._make_subclass(Slow, ones, False, dispatch_sizes_strides_policy="sizes")

    return make


@pytest.fixture(scope="module")
def add():
    return cl.compile(SOURCE, arch="compute_80")


@pytest.mark.slow
@pytest.mark.memory
def test_a_launch_within_a_launch(add, slow):
    import torch

    launcher = cl.load(add)["add"][1, 16]
    x, other = torch.zeros(16), torch.ones(16)
    launcher(x, slow(lambda: launcher(other, other)))
    assert x.tolist() == [1] * 16
    assert other.tolist() == [2] * 16


@pytest.mark.slow
@pytest.mark.memory
def test_an_elementwise_call_within_one(slow):
    import torch

    function = ew.fuse(lambda x, y: x + y)
    x, other = torch.zeros(16), torch.ones(16)
    for _ in range(2):  # the first one compiles
        inner = []
        tensor = slow(lambda: inner.append(function(other, other)))  # noqa: B023
        assert function(x, tensor).tolist() == [1] * 16
        assert inner[0].tolist() == [2] * 16


@pytest.mark.slow
@pytest.mark.memory
def test_an_array_that_changes_while_another_is_read(slow):
    """Values that a call read before stay valid: six dimensions, which torch stores separately."""
    import torch

    function = ew.fuse(lambda x, y: x + y)
    kept = []
    for _ in range(3):
        x = torch.zeros(1, 1, 1, 1, 1, 16)

        def change(x=x):
            kept.append(x.untyped_storage())
            x.set_(torch.zeros(4).untyped_storage(), 0, (4,))
            kept.append([bytearray(96) for _ in range(64)])

        assert function(x, slow(change)).shape == (1, 1, 1, 1, 1, 16)
