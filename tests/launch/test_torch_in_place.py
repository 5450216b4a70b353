"""Tensors of torch that are read where they lie: just what torch's exchange function tells of them.

The code is csrc/arguments/torch/layout.h; what finds the places is _launch/torch/layout.py.
"""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_tensors import REFUSED, call_with

import culaunch as cl
from culaunch import _core
from culaunch._launch.torch import layout as torch_layout

pytestmark = [
    pytest.mark.needs("torch"),
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:.*quant"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested"),
]


@pytest.fixture
def info(host_driver):
    """Return what a launch reads of a tensor; the exchange function has said the same."""
    import torch

    def read(tensor):
        found = _core.array_info(host_driver.core, tensor)
        _core.use_shortcut("places", False)
        try:
            assert _core.array_info(host_driver.core, tensor) == found
            assert not _core.reads_in_place(tensor)
        finally:
            _core.use_shortcut("places", True)
        return found

    read(torch.zeros(1))  # the first tensor finds the places
    return read


def test_the_places_are_found_in_this_torch(info):
    """Else the exchange function is asked, right and slower: then find_layout needs an update."""
    import torch

    assert torch_layout.find_layout() is not None
    assert _core.reads_in_place(torch.zeros(3))


def dtypes():
    names = ("bool", "uint8", "int16", "int64", "uint32", "float16", "bfloat16", "float32")
    return st.sampled_from([*names, "float64", "complex64", "complex128", "float8_e4m3fn"])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_every_plain_tensor_is_read_as_the_exchange_function_reads_it(data):
    import torch
    from recording import RecordingDriver

    driver = RecordingDriver(device_types=(1,), devices=1)
    shape = data.draw(st.lists(st.integers(0, 4), max_size=7))
    dtype = getattr(torch, data.draw(dtypes()))
    tensor = torch.zeros(shape, dtype=dtype)
    for kind in data.draw(
        st.lists(st.sampled_from(["permute", "part", "grad", "view"]), max_size=3)
    ):
        if kind == "permute":
            tensor = tensor.permute(data.draw(st.permutations(range(tensor.ndim))))
        elif kind == "part" and tensor.ndim:
            axis = data.draw(st.integers(0, tensor.ndim - 1))
            start = data.draw(st.integers(0, tensor.shape[axis]))
            tensor = tensor.narrow(axis, start, tensor.shape[axis] - start)
        elif kind == "grad" and dtype.is_floating_point and tensor.is_leaf:
            tensor.requires_grad_()
        else:
            tensor = tensor.detach()[..., None]
    found = _core.array_info(driver.core, tensor)
    in_place = _core.reads_in_place(tensor)
    _core.use_shortcut("places", False)
    try:
        assert _core.array_info(driver.core, tensor) == found
    finally:
        _core.use_shortcut("places", True)
    assert in_place == (tensor.numel() > 0 and tensor.ndim <= 5)
    assert found[0] == tensor.data_ptr()
    assert found[1:3] == (tuple(tensor.shape), tuple(tensor.stride()))


def test_tensors_of_other_classes_and_modes(info):
    import torch

    class Subclass(torch.Tensor):
        pass

    parameter = torch.nn.Parameter(torch.ones(3))
    with torch.inference_mode():
        inferred = torch.ones(3) * 2
    for tensor in (
        parameter,
        torch.ones(3).as_subclass(Subclass),
        inferred,
        (parameter * 2),
        torch.from_dlpack(torch.ones(3)),
        torch.frombuffer(bytearray(16), dtype=torch.int32)[1:],
        torch.ones(3).share_memory_(),
        torch.ones(4).unflatten(0, (2, 2)).t(),
    ):
        assert _core.reads_in_place(tensor)
        assert info(tensor)[0] == tensor.data_ptr()


# Importing the maker of fake tensors takes a second.
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind == "fake")) for kind in REFUSED],
)
def test_tensors_without_plain_memory_are_never_read_in_place(info, kind):
    answers = []
    call_with(kind, lambda tensor: answers.append(_core.reads_in_place(tensor)))
    assert answers == [False]


def test_copies_on_write_are_made_first(info):
    import torch

    original = torch.arange(4.0)
    address = info(original)[0]
    copy = torch._lazy_clone(original)
    assert not _core.reads_in_place(original)
    assert not _core.reads_in_place(copy)
    # A kernel may write to it, so it gets memory of its own, as from the exchange function.
    other = info(copy)[0]
    assert other != address
    assert copy.tolist() == [0, 1, 2, 3]
    assert _core.reads_in_place(copy)
    assert info(original)[0] == address


def test_a_tensor_that_changes_is_read_anew(info):
    import torch

    tensor = torch.ones(3)
    tensor.data = torch.zeros(5, 2, dtype=torch.int16)
    assert info(tensor)[1] == (5, 2)
    tensor = torch.ones(3)
    tensor.resize_(1000)
    assert info(tensor)[:2] == (tensor.data_ptr(), (1000,))
    other = torch.ones(7, dtype=torch.float64)
    torch.utils.swap_tensors(tensor, other)
    assert info(tensor)[1] == (7,)
    tensor.set_(torch.zeros(2, dtype=torch.float64).untyped_storage(), 1, (1,), (1,))
    assert info(tensor)[0] == tensor.data_ptr()
    storage = tensor.untyped_storage()
    storage.resize_(0)
    assert not _core.reads_in_place(tensor)


def test_no_other_class_is_read_as_a_tensor(host_driver):
    """A class that shows torch's exchange API is no tensor: its memory is another object's."""
    import torch

    class Impostor:
        __dlpack_c_exchange_api__ = torch.Tensor.__dlpack_c_exchange_api__

    Named = type("Tensor", (Impostor,), {"__module__": "torch"})
    host_driver.bytes_of(torch.ones(3), 8)
    for impostor in (Impostor(), Named()):
        assert not _core.reads_in_place(impostor)
        with pytest.raises(TypeError):
            host_driver.bytes_of(impostor, 8)


@pytest.mark.slow
@pytest.mark.memory
def test_places_that_do_not_fit_are_not_believed(monkeypatch):
    """If a sample is missing there is no layout; a mode takes no part."""
    import torch

    monkeypatch.delattr(torch, "_lazy_clone")
    assert torch_layout.find_layout() is None
    monkeypatch.undo()
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert torch_layout.find_layout() is not None


def test_many_threads(info):
    import torch

    tensors = [torch.ones(n + 1) for n in range(50)]
    expected = [info(tensor) for tensor in tensors]
    from recording import RecordingDriver

    driver = RecordingDriver(device_types=(1,), devices=1)
    wrong = []

    def work():
        for _ in range(50):
            for tensor, told in zip(tensors, expected, strict=True):
                if _core.array_info(driver.core, tensor) != told:
                    wrong.append(tensor)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_words_of_another_device_are_told_by_torchs_names():
    """The host's remaining bits in the other device's word belong to no device."""
    import torch

    layout = torch_layout.find_layout()
    with torch.inference_mode():
        inferred = torch.zeros(2)
    words = {torch._C._dispatch_keys(tensor).raw_repr() for tensor in (torch.zeros(2), inferred)}
    assert {here for here, _ in layout.words} == words
    for here, there in layout.words:
        names = str(torch._C.DispatchKeySet.from_raw_repr(there))
        assert "CPU" not in names
        assert names.replace("CUDA", "CPU") == str(torch._C.DispatchKeySet.from_raw_repr(here))


@pytest.mark.gpu
def test_on_a_gpu():
    import torch

    image = cl.compile(
        'extern "C" __global__ void put(float* x, int n) '
        "{ if (threadIdx.x < n) x[threadIdx.x] = 7; }",
        arch="native",
    )
    kernel = cl.load(image)["put"]
    with torch.inference_mode():
        first, inferred = torch.zeros(4, device="cuda"), torch.zeros(4, device="cuda")
    kernel[1, 32](torch.zeros(4, device="cuda"), 4)  # the first of a kind makes it known
    kernel[1, 32](first, 4)
    for tensor in (
        torch.zeros(9, device="cuda"),
        inferred,
        torch.zeros(2, 8, device="cuda")[1, 2:],
    ):
        assert _core.reads_in_place(tensor)
        kernel[1, 32](tensor, tensor.numel() - 1)
        assert tensor.tolist() == [7.0] * (tensor.numel() - 1) + [0.0]
    copy = torch._lazy_clone(tensor)
    assert not _core.reads_in_place(copy)
    kernel[1, 32](copy, 1)
    assert copy.data_ptr() != tensor.data_ptr()


@pytest.mark.gpu
@pytest.mark.multi_gpu
def test_on_two_gpus():
    import torch

    for index in range(2):
        tensor = torch.zeros(3, device=f"cuda:{index}")
        _core.array_stream(_core.current_driver(), tensor)
        assert _core.reads_in_place(tensor)
        assert _core.array_stream(_core.current_driver(), tensor)[1] == index
