"""Functions as operators of PyTorch, on tensors of the CPU and the emulator."""

import importlib
import itertools
import sys
import textwrap

import pytest

import culaunch as cl
from culaunch.testing import use_driver

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch")]
SOURCE = """
template <class T> __global__ void scale(T* y, const T* x, double a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)(x[i] * (T)a);
}
template <class T> __global__ void multiply(T* z, const T* x, const T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] * y[i];
}
"""
_numbers = itertools.count()


@pytest.fixture(scope="module")
def torch():
    return importlib.import_module("torch")


@pytest.fixture(scope="module")
def image_of_two():
    names = [f"{name}<{kind}>" for name in ("scale", "multiply") for kind in ("float", "double")]
    return cl.compile(SOURCE, arch="compute_80", names=names)


@pytest.fixture(scope="module")
def loaded(image_of_two):
    with use_driver("emulator"):
        return cl.load(image_of_two)


@pytest.fixture
def kernels(emulated, loaded):
    return loaded


@pytest.fixture
def name():
    """A name that no operator of this process has."""
    return f"culaunch_test::op{next(_numbers)}"


@pytest.fixture
def scale(kernels):
    @cl.function
    def scale(x, factor: float):
        """y = x * factor."""
        cl.check(x.is_contiguous(), "x must be contiguous")
        y = cl.empty_like(x)
        n = x.size
        kernels[f"scale<{x.dtype}>"][cl.ceildiv(n, 256), 256](y, x, factor, n)
        return y

    return scale


@pytest.fixture
def scale_in_place(kernels):
    @cl.function
    def scale_in_place(x, factor: float):
        n = x.size
        kernels[f"scale<{x.dtype}>"][cl.ceildiv(n, 256), 256](x, x, factor, n)

    return scale_in_place


@pytest.fixture
def product(kernels):
    @cl.function
    def product(x: cl.Array("float32 | float64", "n"), y: cl.Array(cl.same("x"), "n")):
        z = cl.empty_like(x)
        kernels[f"multiply<{x.dtype}>"][cl.ceildiv(x.size, 64), 64](z, x, y, x.size)
        return z

    @product.backward
    @cl.function
    def product_backward(grad, x, y):
        return product(grad, y), product(grad, x)

    return product


@pytest.fixture
def everything(kernels):
    """A function with a parameter of each kind, and several results."""

    @cl.function
    def everything(
        x,
        w: cl.Array | None = None,
        *,
        count: int = 3,
        factor: float | None = None,
        word: str = "ab",
        flag: bool = False,
        dtype: cl.DType = "float32",
        xs: list[cl.Array] | None = None,
    ):
        y, z = cl.empty_like(x), cl.zeros((count, 2), dtype)
        other = x if w is None else w
        kernels["scale<float>"][1, 256](y, other, 1.0 if factor is None else factor, x.size)
        items = 0 if xs is None else len(xs)
        return y, z, x.shape[0] + count + len(word) + items, 2.5 * (factor or 1), flag

    return everything


def test_an_operator_is_called_without_python(scale, name, torch):
    op = cl.torch_op(name, scale)
    assert op.schema == f"{name}(Tensor x, float factor) -> Tensor"
    assert op.dispatch == "native", op.why_python
    assert op.why_python is None
    assert name in repr(op)
    x = torch.arange(1000.0)
    for call in (op, op.overload, getattr(torch.ops.culaunch_test, name.partition("::")[2])):
        assert torch.equal(call(x, 3.0), 3 * x)
        assert torch.equal(call(x, factor=3), 3 * x)
    assert torch.equal(op(x.double(), 0.1), 0.1 * x.double())


def test_errors_come_as_they_are(scale, name, torch):
    op = cl.torch_op(name, scale)
    for _ in range(3):
        with pytest.raises(ValueError, match="x must be contiguous"):
            op(torch.ones(4, 5).t(), 2.0)
        with pytest.raises(ValueError, match="grid must be from 1"):
            op(torch.ones(0), 2.0)
        with pytest.raises(cl.KernelNotFoundError, match="scale<int>"):
            op(torch.ones(3, dtype=torch.int32), 2.0)
    with pytest.raises(RuntimeError, match="Expected a value of type 'float' for argument"):
        op(torch.ones(3), "a")
    assert torch.equal(op(torch.ones(3), 2.0), torch.full((3,), 2.0))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_graph_has_no_break(scale, name, torch, backend):
    op = cl.torch_op(name, scale)

    @torch.compile(fullgraph=True, dynamic=True, backend=backend)
    def compiled(x, factor):
        return op(x * 2, factor) + getattr(torch.ops.culaunch_test, name.partition("::")[2])(x, 1.0)

    for shape in ((3, 4), (5, 7), (1, 600)):
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x, 3.0), 7 * x)


@pytest.mark.slow
@pytest.mark.needs("g++")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of inductor's own imports
def test_inductor_calls_it(product, name, torch):
    op = cl.torch_op(name, product)

    @torch.compile(fullgraph=True, dynamic=True)
    def compiled(x, y):
        return op(x + 1, y * 2).sum()

    x, y = (torch.randn(100, requires_grad=True) for _ in range(2))
    result = compiled(x, y)
    torch.testing.assert_close(result, ((x + 1) * y * 2).sum())
    result.backward()
    torch.testing.assert_close(x.grad, 2 * y)


def test_what_is_exported_has_a_free_size(scale, name, torch):
    op = cl.torch_op(name, scale)

    class Model(torch.nn.Module):
        def forward(self, x):
            return op(x, 2.0)

    sizes = {"x": {0: torch.export.Dim("rows")}}
    exported = torch.export.export(Model(), (torch.ones(3, 4),), dynamic_shapes=sizes)
    (node,) = (node for node in exported.graph.nodes if node.op == "call_function")
    assert node.target is op.overload
    x = torch.randn(700, 4)
    assert torch.equal(exported.module()(x), 2 * x)


def test_opcheck_of_a_function(scale, name, torch):
    op = cl.torch_op(name, scale)
    for x in (torch.randn(5), torch.randn(2, 3, 4, dtype=torch.float64)):
        torch.library.opcheck(op.overload, (x, 2.0))


def test_opcheck_of_what_writes_its_argument(scale_in_place, name, torch):
    op = cl.torch_op(name, scale_in_place)
    assert op.schema == f"{name}(Tensor(a!) x, float factor) -> ()"
    assert op.mutates == ("x",)
    x = torch.ones(5)
    assert op(x, 3.0) is None
    assert torch.equal(x, torch.full((5,), 3.0))
    torch.library.opcheck(op.overload, (x, 2.0))

    @torch.compile(fullgraph=True, backend="aot_eager")
    def compiled(x):
        y = x + 1
        op(y, 2.0)
        return y

    assert torch.equal(compiled(x), torch.full((5,), 8.0))


@pytest.mark.slow
def test_gradients_are_another_functions(product, name, torch):
    op = cl.torch_op(name, product)
    x, y = (torch.randn(5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(op, (x, y))
    torch.library.opcheck(op.overload, (x, y))
    op(x, y).sum().backward()  # of a gradient that is one number, expanded
    assert torch.equal(x.grad, y)
    assert torch.equal(y.grad, x)


def test_gradients_of_a_compiled_graph(product, name, torch):
    op = cl.torch_op(name, product)

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def compiled(x, y):
        return (op(x, y) * 2).sum()

    for size in (5, 9):
        x, y = (torch.randn(size, requires_grad=True) for _ in range(2))
        compiled(x, y).backward()
        torch.testing.assert_close(x.grad, 2 * y)
        torch.testing.assert_close(y.grad, 2 * x)


def test_a_backward_function_may_come_later(scale, name, torch):
    op = cl.torch_op(name, scale)

    @scale.backward
    @cl.function
    def scale_backward(grad, factor):
        return scale(grad, factor)

    x = torch.randn(3, requires_grad=True)
    op(x, 4.0).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 4.0))


def test_a_backward_function_of_torch(scale, name, torch):
    @scale.backward
    def backward(out, grad, x, factor):
        assert out.shape == x.shape
        return grad * factor

    op = cl.torch_op(name, scale)
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: op(x, 2.0), (x,))


def test_a_gradient_may_be_none(kernels, name, torch):
    @cl.function
    def weighted(x, weights):
        y = cl.empty_like(x)
        kernels["multiply<double>"][1, 256](y, x, weights, x.size)
        return y

    @weighted.backward
    @cl.function
    def weighted_backward(grad, weights):
        dx = cl.empty_like(grad)
        kernels["multiply<double>"][1, 256](dx, grad, weights, grad.size)
        return dx, None

    op = cl.torch_op(name, weighted)
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(4, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: op(x, weights), (x,))


def test_without_a_backward_function_there_is_no_gradient(scale, name, torch):
    op = cl.torch_op(name, scale)
    with pytest.raises(TypeError, match="requires grad"):
        op(torch.ones(3, requires_grad=True), 2.0)
    with torch.no_grad():
        assert op(torch.ones(3, requires_grad=True), 2.0).sum() == 6


def test_arguments_and_results_of_every_kind(everything, name, torch):
    op = cl.torch_op(name, everything)
    assert op.schema.partition("(")[2] == (
        'Tensor x, Tensor? w=None, *, SymInt count=3, float? factor=None, str word="ab", '
        "bool flag=False, ScalarType dtype=float32, Tensor[]? xs=None) "
        "-> (Tensor, Tensor, SymInt, float, bool)"
    )
    x = torch.arange(5.0)
    y, z, count, number, flag = op(x)
    assert torch.equal(y, x)
    assert (z.shape, z.dtype, count, number, flag) == ((3, 2), torch.float32, 10, 2.5, False)
    keywords = {
        "count": 4, "factor": 3.0, "word": "wörter", "flag": True, "dtype": torch.bfloat16,
        "xs": [x, x, x],
    }  # fmt: skip
    y, z, count, number, flag = op(x, x + 1, **keywords)
    assert torch.equal(y, 3 * (x + 1))
    assert (z.shape, z.dtype, count, number, flag) == ((4, 2), torch.bfloat16, 18, 7.5, True)
    torch.library.opcheck(op.overload, (x, x + 1), keywords)
    torch.library.opcheck(op.overload, (x,))


def test_python_serves_where_the_native_dispatch_is_missing(
    everything, product, name, torch, monkeypatch
):
    from culaunch._torch import dispatch

    monkeypatch.setattr(dispatch, "_missing", lambda: "torch_library_impl")
    op = cl.torch_op(name, everything)
    assert op.dispatch == "python"
    assert "torch_library_impl" in op.why_python
    x = torch.arange(5.0)
    y, z, *rest = op(x, None, count=2, xs=[x])
    assert torch.equal(y, x)
    assert (z.shape, rest) == ((2, 2), [10, 2.5, False])
    torch.library.opcheck(op.overload, (x,))
    other = cl.torch_op(f"{name}b", product)
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(other, (x, x.detach().clone()))


def test_a_fused_function_is_an_operator(name, torch):
    import culaunch.elementwise as ew

    @ew.fuse
    def gelu_like(x, gate):
        return x * ew.tanh(1.7 * x) * gate

    op = cl.torch_op(name, gelu_like)
    assert op.schema == f"{name}(Tensor x, Tensor gate) -> Tensor"
    x, gate = torch.randn(3, 5), torch.randn(5)
    expected = x * torch.tanh(1.7 * x) * gate
    torch.testing.assert_close(op(x, gate), expected)
    torch.library.opcheck(op.overload, (x, gate))
    compiled = torch.compile(lambda x: op(x, gate) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), expected + 1)


def test_what_is_allocated_is_the_tensor_of_torch(scale, name, torch):
    """And not one more over its memory: CUDA graphs free only what their allocator made."""
    y = cl.torch_op(name, scale)(torch.ones(5), 2.0)
    assert y.untyped_storage().resizable()
    assert torch.empty(1).untyped_storage().resizable()


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


# ---- names, and modules that are loaded again


def test_a_function_that_is_registered_again_is_the_same(scale, name):
    assert cl.torch_op(name, scale) is cl.torch_op(name, scale)


@pytest.mark.parametrize("is_native", [True, False])
def test_a_module_that_is_loaded_again(tmp_path, monkeypatch, name, torch, is_native, kernels):
    from culaunch._torch import dispatch

    if not is_native:
        monkeypatch.setattr(dispatch, "_missing", lambda: "a name")
    text = """
        import culaunch as cl

        @cl.function
        def made(x, count: int = {default}):
            return cl.zeros((count, {columns}))

        op = cl.torch_op("{name}", made)
    """
    stem = name.replace("::", "_")
    path = tmp_path / f"{stem}.py"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)

    def write(**words):
        path.write_text(textwrap.dedent(text).format(name=name, **words))
        importlib.invalidate_caches()

    write(default=1, columns=2)
    module = importlib.import_module(stem)
    first, x = module.op, torch.ones(1)
    assert first(x).shape == (1, 2)
    write(default=1, columns=3)
    module = importlib.reload(module)
    assert module.op is first
    assert first(x).shape == (1, 3)
    assert first.overload(x).shape == (1, 3)
    write(default=5, columns=3)
    with pytest.raises(ValueError, match=r"count=1\) -> Tensor, and made is .*count=5\)"):
        importlib.reload(module)
    assert first(x).shape == (1, 3)


def test_names_that_are_none(scale, scale_in_place, name, torch):
    for wrong in ("scale", "a::b::c", "1a::b", "::b", "a::", "a.b::c", ""):
        with pytest.raises(ValueError, match="name must be 'namespace::name'"):
            cl.torch_op(wrong, scale)
    with pytest.raises(TypeError, match="name must be a str"):
        cl.torch_op(3, scale)
    cl.torch_op(name, scale)
    with pytest.raises(ValueError, match=r"is the operator of .*scale, and operators live as long"):
        cl.torch_op(name, scale_in_place)
    with pytest.raises(ValueError, match="reserved"):
        cl.torch_op("prim::culaunch", scale)
    library = torch.library.Library("culaunch_other", "FRAGMENT")
    library.define("there(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="has an operator culaunch_other::there already"):
        cl.torch_op("culaunch_other::there", scale)


def test_what_is_no_function(name):
    for wrong in (len, None, lambda x: x):
        with pytest.raises(TypeError, match=r"function must be a cl\.function"):
            cl.torch_op(name, wrong)


# ---- functions that no operator can be


def whole(x):
    return x


def view(x):
    return x[1:]


def on_one_path(x):
    return x if x.shape[0] == 17 else cl.empty_like(x)


def twice(x):
    y = cl.empty_like(x)
    return y, y.reshape(-1)


def nested(x):
    return cl.empty_like(x), (cl.empty_like(x), 1)


def in_dict(x):
    return {"y": cl.empty_like(x)}


def in_tuple(x):
    return (cl.empty_like(x),)


def with_none(x):
    return cl.empty_like(x), None


def without_arrays(n: int):
    return n


def complex_number(x, factor: complex = 1j):
    return cl.empty_like(x)


def infinite(x, factor: float = float("inf")):
    return cl.empty_like(x)


def different(x):
    return cl.empty_like(x) if x.shape[0] > 3 else (cl.empty_like(x), 1)


def counted(x, n: int):
    for _ in range(n):
        x.is_contiguous()
    return cl.empty_like(x)


REFUSED = {
    whole: "whole returns its argument x: torch forbids",
    view: "view returns a view of an argument: torch forbids",
    on_one_path: "returns its argument x: torch forbids",
    twice: "two arrays in the same memory",
    nested: "a tuple in a tuple",
    in_dict: "a dict",
    in_tuple: "without the tuple",
    with_none: "with None in it",
    without_arrays: "no array parameter",
    complex_number: "parameter factor is",
    infinite: "cannot have the default inf",
    different: "on one path and .* on another",
    counted: "pass schema=",
}


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body.__name__)
def test_a_function_that_no_operator_can_be(body, name, torch):
    with pytest.raises(TypeError, match=REFUSED[body]):
        cl.torch_op(name, cl.function(body))
    assert not hasattr(torch.ops.culaunch_test, name.partition("::")[2])


def test_what_a_later_path_does_is_held_against_the_schema(kernels, name, torch):
    @cl.function
    def late(x, word: str = "new"):
        if word == "same":
            return x
        if word == "write":
            kernels["scale<float>"][1, 32](x, x, 2.0, x.size)
        return cl.empty_like(x)

    op = cl.torch_op(name, late)
    x = torch.ones(3)
    assert op(x).shape == (3,)
    for call in (op, late):
        with pytest.raises(TypeError, match="returns its argument x"):
            call(x, "same")
        with pytest.raises(TypeError, match=r"writes x for these arguments, .*mutates="):
            call(x, "write")
    assert torch.equal(x, torch.ones(3))


def test_a_schema_may_be_given(name, torch):
    op = cl.torch_op(name, cl.function(counted), schema="(Tensor x, SymInt n=2) -> Tensor")
    assert op(torch.ones(3)).shape == (3,)
    with pytest.raises(ValueError, match="schema has the parameters y, and counted has x, n"):
        cl.torch_op(f"{name}b", cl.function(counted), schema="(Tensor y) -> Tensor")


def test_torch_may_be_missing(name, scale, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(cl.MissingDependencyError, match="pip install torch"):
        cl.torch_op(name, scale)
