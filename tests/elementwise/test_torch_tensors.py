"""Tensors whose memory is not what they show are refused, as inputs and as outputs."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "launch"))

from torch_tensors import REFUSED, call_with

from culaunch import elementwise as ew

pytestmark = [
    pytest.mark.needs("torch"),
    pytest.mark.filterwarnings("ignore:Sparse"),
    pytest.mark.filterwarnings("ignore:.*quant"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested"),
]

twice = ew.fuse(lambda x: x * 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_an_input_or_output_whose_memory_is_not_what_it_shows_is_refused(name):
    import torch

    with pytest.raises(TypeError, match=REFUSED[name]):
        call_with(name, twice)
    x = torch.ones(4)
    with pytest.raises(TypeError, match=REFUSED[name]):
        call_with(name, lambda tensor: twice(x, out=tensor))
