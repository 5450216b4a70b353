"""torch's own check over the functions of the examples; function_torch.py does it itself."""

import runpy
from pathlib import Path

import pytest

import culaunch as cl

pytestmark = [
    pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch"), pytest.mark.slow,
]  # fmt: skip
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def operator(name):
    """The operator of a function in an example."""

    def make(example, function):
        return cl.frameworks.torch_op(name, runpy.run_path(str(EXAMPLES / example))[function])

    return make


@pytest.mark.parametrize("shape", [(1000,), (4, 5), (0,)])
def test_scale(operator, name, torch, shape):
    op = operator("function_scale.py", "scale")
    assert op.schema == f"{name}(Tensor x, float factor) -> Tensor"
    for dtype in (torch.float16, torch.float32, torch.float64):
        torch.library.opcheck(op.overload, (torch.randn(shape, dtype=dtype), 0.5))


@pytest.mark.parametrize("size", [0, 1, 5000])
def test_a_reduction_in_two_kernels(operator, torch, size):
    op = operator("function_split_reduction.py", "total")
    x = torch.ones(size)
    assert op(x).item() == size
    torch.library.opcheck(op.overload, (x,))


def test_a_cache_that_is_written(operator, name, torch):
    op = operator("function_paged_cache.py", "update")
    assert op.schema == f"{name}(Tensor(a!) cache, Tensor keys, Tensor slots) -> ()"
    cache, keys = torch.zeros(3, 4, 2, 8), torch.randn(4, 2, 8)
    torch.library.opcheck(op.overload, (cache, keys, torch.tensor([5, -1, 0, 11])))


@pytest.mark.needs("triton")
def test_a_layer_of_triton(operator, name, torch):
    op = operator("function_triton_layer.py", "layer")
    assert op.schema.endswith("Tensor weight, Tensor bias, float eps=1e-05) -> Tensor")
    x, weight = torch.randn(3, 48), torch.randn(48)
    torch.library.opcheck(op.overload, (x, torch.randn(1, 48), weight, weight))
