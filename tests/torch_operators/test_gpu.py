"""Operators on a GPU: they run there alone."""

import pytest
from torch_kernels import SOURCE

import culaunch as cl

pytestmark = [pytest.mark.needs("torch")]


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
# torch captures an empty graph on purpose and records the warning, unless warnings are errors.
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty:UserWarning")
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_on_a_gpu(name, torch, mode, monkeypatch):
    """With "reduce-overhead", in CUDA graphs that torch keeps in a tree."""
    monkeypatch.setenv("CULAUNCH_DRIVER", "cuda")
    cl.set_driver("cuda")
    kernels = cl.load(cl.compile(SOURCE, names=["scale<float>", "multiply<float>"]))

    @cl.function
    def product(x, y):
        z = cl.empty_like(x)
        kernels["multiply<float>"][cl.ceildiv(x.size, 64), 64](z, x, y, x.size)
        return z

    @product.backward
    @cl.function
    def product_backward(grad, x, y):
        return product(grad, y), product(grad, x)

    op = cl.torch_op(name, product)
    assert op.dispatch == "native"

    @torch.compile(fullgraph=True, mode=mode)
    def compiled(x, y):
        return op(x + 1, y).sum()

    for _ in range(5):
        x = torch.randn(1000, device="cuda")
        y = torch.randn(1000, device="cuda", requires_grad=True)
        result = compiled(x, y)
        torch.testing.assert_close(result, ((x + 1) * y).sum())
        result.backward()
        torch.testing.assert_close(y.grad, x + 1)
    torch.library.opcheck(op.overload, (torch.ones(5, device="cuda"), torch.ones(5, device="cuda")))
    graph, x = torch.cuda.CUDAGraph(), torch.ones(100, device="cuda")
    with torch.cuda.graph(graph):
        captured = op(x, x)
    x.fill_(3)
    graph.replay()
    assert torch.equal(captured, torch.full((100,), 9.0, device="cuda"))
