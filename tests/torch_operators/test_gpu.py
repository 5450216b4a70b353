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


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "cuda")
    cl.set_driver("cuda")
    return cl.load(cl.compile(SOURCE, names=["scale<float>", "multiply<float>"]))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty:UserWarning")
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_function_that_nobody_registered_on_a_gpu(on_gpu, torch, mode):
    @cl.function
    def scaled(x, factor: float):
        y = cl.empty_like(x)
        on_gpu["scale<float>"][cl.ceildiv(x.size, 64), 64](y, x, factor, x.size)
        return {"y": y, "n": x.size}

    @torch.compile(fullgraph=True, mode=mode)
    def compiled(x):
        made = scaled(x + 1, 3.0)
        return made["y"] * made["n"]

    for _ in range(5):
        x = torch.randn(1000, device="cuda")
        torch.testing.assert_close(compiled(x), 3000 * (x + 1))


@pytest.mark.gpu
def test_a_plain_call_on_a_gpu(on_gpu, name, torch, monkeypatch):
    """On tensors of the GPU, too, the dispatcher is not asked, and on another stream neither."""
    from culaunch._torch import transforms
    from culaunch._torch.dispatch import open_plain

    @cl.function
    def product(x, y):
        z = cl.empty_like(x)
        on_gpu["multiply<float>"][cl.ceildiv(x.size, 64), 64](z, x, y, x.size)
        return z

    def refuse(*args, **keywords):
        raise AssertionError("a plain call went to the dispatcher")

    monkeypatch.setattr(transforms, "call", refuse)
    op = cl.torch_op(name, product)
    assert (op.dispatch, open_plain()) == ("native", None)
    x = torch.arange(1000.0, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        y = op(x, x)
    torch.cuda.synchronize()
    assert torch.equal(y, x * x)
    with torch.inference_mode():
        assert torch.equal(op(x, x), x * x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = op(x, x)
    x.fill_(3)
    graph.replay()
    assert torch.equal(captured, torch.full((1000,), 9.0, device="cuda"))


@pytest.mark.gpu
@pytest.mark.needs("triton")
def test_a_triton_kernel_on_a_gpu(on_gpu, name, torch):
    import importlib

    kernel = importlib.import_module("kernels_to_register").typed
    native = importlib.import_module("culaunch.triton").native
    op = cl.torch_op(name, native(kernel), grid=(16,), constants={"BLOCK": 64})
    assert op.mutates == ("out",)
    x, out = torch.arange(1000.0, device="cuda"), torch.zeros(1000, device="cuda")
    op(x, out, 1000)
    assert torch.equal(out, 2 * x)
    torch.library.opcheck(op.overload, (x, out, 1000))
