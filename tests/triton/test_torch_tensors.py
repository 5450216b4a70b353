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
