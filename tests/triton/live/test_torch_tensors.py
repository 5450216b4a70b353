"""Tensors whose memory is not what they show are refused on both paths of a call."""

import pytest
from torch_tensors import REFUSED, call_with

pytestmark = [
    pytest.mark.needs("triton", "torch"),
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:.*quant"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_tensor_whose_memory_is_not_what_it_shows_is_refused(recorder, name):
    import torch
    from quick_kernels import mixed

    from culaunch.triton import native

    kernel = native(mixed)

    def call(tensor):
        kernel[(1,)](x, tensor, 1, 1.0, True, None, BLOCK=32)

    x = torch.zeros(4)
    for _ in range(3):  # the quick path has learned of tensors then
        with pytest.raises(TypeError, match=rf"argument .* of mixed\(\) .*{REFUSED[name]}"):
            call_with(name, call)
        before = len(recorder.launches)
        call(x)
        assert len(recorder.launches) == before + 1


@pytest.fixture
def other_tensors():
    """Subclasses of tensors that tell Triton of other memory, by what they tell."""
    import torch

    # The emulator knows the memory of what a launch is given: one array has both.
    storage = torch.ones(128)
    other = storage[64:].view(torch.int32)
    other[:] = 7

    class Address(torch.Tensor):
        def data_ptr(self):
            return other.data_ptr()

    class Type(torch.Tensor):
        dtype = torch.int32

    class Both(torch.Tensor):
        def __getattribute__(self, name):
            return (
                getattr(other, name)
                if name in ("data_ptr", "dtype")
                else super().__getattribute__(name)
            )

    class All(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if function in (torch.Tensor.data_ptr, torch.Tensor.dtype.__get__):
                args = (other,)
            with torch._C.DisableTorchFunctionSubclass():
                return function(*args, **(kwargs or {}))

    classes = {
        "data_ptr": Address, "dtype": Type, "__getattribute__": Both, "__torch_function__": All,
    }  # fmt: skip
    return classes, storage, other


@pytest.mark.parametrize("what", ["data_ptr", "dtype", "__getattribute__", "__torch_function__"])
def test_a_subclass_says_its_address_and_its_type(launched, other_tensors, what):
    """Triton asks for them, as methods and attributes of Python."""
    import torch
    import triton
    from installed_kernels import add

    classes, y, other = other_tensors
    kernel = launched(triton.jit(add.fn))
    x = torch.full((64,), 1.5)
    told = x.as_subclass(classes[what])
    first = x.view(torch.int32) if what == "dtype" else other
    if what == "data_ptr":
        first = other.view(torch.float32)
    for _ in range(3):  # not by the quick path either
        for one, expected in ((x, x + 1), (told, first + 1.0)):
            out = torch.zeros(64)
            kernel[(1,)](one, y, out, 64, BLOCK=64)
            assert torch.equal(out, expected)
