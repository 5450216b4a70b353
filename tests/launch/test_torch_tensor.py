"""Tensors of torch are refused if their memory is not what they show.

The code is csrc/arguments/torch/tensor.cpp.
"""

import os
import sys
import textwrap
from pathlib import Path

import pytest
from torch_tensors import REFUSED, call_with

import culaunch as cl
from culaunch._launch.torch import bits, layout, versions

pytestmark = [
    pytest.mark.needs("torch"),
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:.*quant"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_tensor_whose_memory_is_not_what_it_shows_is_refused(host_driver, name):
    with pytest.raises(TypeError, match=rf"argument 0 of k, .*{REFUSED[name]}") as caught:
        call_with(name, lambda tensor: host_driver.bytes_of(tensor, 8))
    assert "frame #" not in str(caught.value)
    assert not host_driver.launches


@pytest.mark.slow
@pytest.mark.parametrize("name", ["conjugate", "negative", "meta", "sparse", "fake"])
def test_a_tensor_map_is_not_made_of_such_a_tensor(host_driver, name):
    with pytest.raises(TypeError, match=REFUSED[name]):
        call_with(name, lambda tensor: cl.arguments.TensorMap.tiled(tensor, box=(4,)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["conjugate", "negative", "meta", "sparse", "fake"])
def test_it_is_not_copied_to_the_device(host_driver, name):
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        call_with(name, cl.to_device)


def test_what_is_resolved_empty_or_conjugated_twice_is_taken(host_driver):
    import torch

    z = torch.ones(3, 4, dtype=torch.complex64)
    for tensor in (
        z,
        z.conj().resolve_conj(),
        z.conj().conj(),
        z.conj().real,
        z.imag,
        torch._neg_view(torch.ones(4)).resolve_neg(),
        torch.ones(4).conj(),  # a real tensor is its own conjugate
        torch.zeros(0, 3),
        torch.zeros(0).as_subclass(torch.nn.Parameter),
    ):
        data = host_driver.bytes_of(tensor, 8)
        assert int.from_bytes(data, "little") == tensor.data_ptr()


def test_the_place_of_the_bits_is_found_in_this_torch():
    """Else each tensor is asked, which is right and slow: then find_bits needs an update."""
    place = bits.find_bits()
    assert place is not None
    assert place[3] != 0


def test_bits_that_move_are_not_believed(monkeypatch):
    """If one tensor of all kinds does not fit, the tensors are asked."""
    import torch

    samples = bits.sample_tensors()
    odd = torch.ones(2, dtype=torch.complex64)
    odd.is_conj = lambda: True
    monkeypatch.setattr(bits, "sample_tensors", lambda: (*samples[:3], [*samples[3], odd]))
    assert bits.find_bits() is None
    monkeypatch.setattr(bits, "sample_tensors", lambda: (samples[0], samples[0], *samples[2:]))
    assert bits.find_bits() is None


@pytest.mark.slow
def test_a_mode_leads_to_no_other_place():
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    place = bits.find_bits()
    found = []
    with FakeTensorMode():
        found.append(bits.find_bits())
    torch.vmap(lambda x: found.append(bits.find_bits()) or x)(torch.ones(2, 2))
    torch.func.grad(lambda x: found.append(bits.find_bits()) or x.sum())(torch.ones(2))
    # A mode may hide where a gradient would be: then tensors are asked for it.
    assert all(one in (place, (*place[:3], 0, place[4]), None) for one in found)


def test_nobody_sees_how_it_is_found(host_driver):
    """Who records operations, to make them again or to count them, finds none of ours."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Operations(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    with Functions(), Operations():
        place = bits.find_bits()
        found_layout = layout.find_layout()
        versions.find_counters(native=True)
    assert seen == []
    assert place == bits.find_bits()
    assert found_layout is not None


def test_a_tensor_is_asked_for_its_gradient_where_its_place_is_not_known(monkeypatch):
    import torch

    with torch.inference_mode():
        assert bits.find_bits()[3] == 0
    zeros = torch.zeros_like
    monkeypatch.setattr(torch, "zeros_like", lambda t, requires_grad: zeros(t))
    assert bits.find_bits()[3] == 0


@pytest.mark.slow
def test_where_the_bits_are_not_known_the_tensor_is_asked(run_after_torch):
    """In a process of its own: the place is kept for a process's life."""
    program = """
        import torch
        from recording import the_recorder
        from culaunch import _core
        from culaunch._launch import upcalls
        from culaunch._launch.torch import bits, tensor as torch_tensor

        driver = the_recorder(device_types=(1,), devices=1)
        z = torch.ones(4, dtype=torch.complex64)

        def refused(tensor):
            try:
                driver.bytes_of(tensor, 8)
            except TypeError as error:
                return "resolve_" in str(error)
            return False

        hidden, asked = True, 0

        def is_lazy(tensor):
            global asked
            asked += 1
            return torch_tensor.is_lazy(tensor)

        upcalls.find_bits = lambda: None if hidden else bits.find_bits()
        upcalls.is_lazy = is_lazy
        _core.set_upcalls(launch=upcalls)

        def show():
            for _ in range(2):
                before = asked
                answers = refused(z), refused(z.conj()), refused(z.conj().imag), refused(z.real)
            print(*answers, asked - before)

        show()
        hidden = False  # as if a mode had ended: now they are found
        show()
        """
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = run_after_torch(["-c", textwrap.dedent(program)], env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "False True True False 4\nFalse True True False 0\n"


def test_an_interrupt_while_a_tensor_is_read_arrives_as_itself(host_driver):
    import torch

    class Sizes(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(
                cls, (2,), dispatch_sizes_strides_policy="sizes"
            )

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        host_driver.bytes_of(Sizes(), 8)
