"""Operators on a GPU: they run only there."""

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
    cl.driver.set_driver("cuda")
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

    op = cl.frameworks.torch_op(name, product)
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
    cl.driver.set_driver("cuda")
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

    @cl.function
    def product(x, y):
        z = cl.empty_like(x)
        on_gpu["multiply<float>"][cl.ceildiv(x.size, 64), 64](z, x, y, x.size)
        return z

    def refuse(*args, **keywords):
        raise AssertionError("a plain call went to the dispatcher")

    monkeypatch.setattr(cl.frameworks.TorchOperator, "_dispatcher", lambda _: refuse)
    op = cl.frameworks.torch_op(name, product)
    assert op.dispatch == "native"
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
def test_what_the_dispatcher_calls_on_a_gpu(on_gpu, name, torch):
    """A plain call runs the function at once, and handles autograd and version counters."""

    @cl.function
    def double(x):
        on_gpu["scale<float>"][cl.ceildiv(x.size, 64), 64](x, x, 2.0, x.size)

    op = cl.frameworks.torch_op(name, double)
    x = torch.arange(1000.0, device="cuda")
    kernels = op._kernels
    op._kernels = [(kernel, None) for kernel, _ in kernels]  # these would be called in Python
    op.set_way()
    op.overload(x)
    with torch.inference_mode():
        op.overload(x)
    assert (x._version, x[3].item()) == (2, 12.0)
    op._kernels = kernels
    op.set_way()
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    for call in (op, op.overload, double):
        with pytest.raises(TypeError, match=r"requires grad|has no gradient"):
            call(leaf * 2)
    with pytest.raises(TypeError, match="has no gradient"):
        torch.func.grad(lambda x: (y := x * 2, op(y))[0].sum())(x)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.needs("g++")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_model_that_is_compiled_ahead_of_time_on_a_gpu(on_gpu, name, torch, tmp_path):
    @cl.function
    def scaled(x, factor: float):
        y = cl.empty_like(x)
        on_gpu["scale<float>"][cl.ceildiv(x.size, 64), 64](y, x, factor, x.size)
        return y

    op = cl.frameworks.torch_op(name, scaled)

    class Model(torch.nn.Module):
        def forward(self, x):
            return op(x + 1, 2.0) * 3

    sizes = {"x": {0: torch.export.Dim("rows")}}
    example = torch.ones(3, 4, device="cuda")
    exported = torch.export.export(Model(), (example,), dynamic_shapes=sizes)
    path = str(tmp_path / "model.pt2")
    model = torch._inductor.aoti_load_package(
        torch._inductor.aoti_compile_and_package(exported, package_path=path)
    )
    for rows in (3, 700):
        x = torch.randn(rows, 4, device="cuda")
        torch.testing.assert_close(model(x), (x + 1) * 6)


@pytest.mark.gpu
@pytest.mark.needs("triton")
def test_a_triton_kernel_on_a_gpu(on_gpu, name, torch):
    import importlib

    kernel = importlib.import_module("kernels_to_register").typed
    native = importlib.import_module("culaunch.triton").native
    op = cl.frameworks.torch_op(name, native(kernel), grid=(16,), constants={"BLOCK": 64})
    assert op.mutates == ("out",)
    x, out = torch.arange(1000.0, device="cuda"), torch.zeros(1000, device="cuda")
    op(x, out, 1000)
    assert torch.equal(out, 2 * x)
    torch.library.opcheck(op.overload, (x, out, 1000))
