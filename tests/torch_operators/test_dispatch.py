"""Calls of operators: without Python in between, or through it."""

import pytest

import culaunch as cl
from culaunch._torch import dispatch

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch")]


def test_an_operator_is_called_without_python(scale, name, torch):
    op = cl.frameworks.torch_op(name, scale)
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
    op = cl.frameworks.torch_op(name, scale)
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


def test_arguments_and_results_of_every_kind(everything, name, torch):
    op = cl.frameworks.torch_op(name, everything)
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
    monkeypatch.setattr(dispatch, "_missing", lambda: "torch_library_impl")
    op = cl.frameworks.torch_op(name, everything)
    assert op.dispatch == "python"
    assert "torch_library_impl" in op.why_python
    x = torch.arange(5.0)
    y, z, *rest = op(x, None, count=2, xs=[x])
    assert torch.equal(y, x)
    assert (z.shape, rest) == ((2, 2), [10, 2.5, False])
    torch.library.opcheck(op.overload, (x,))
    other = cl.frameworks.torch_op(f"{name}b", product)
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(other, (x, x.detach().clone()))


@pytest.mark.parametrize("way", ["native", "python"])
@pytest.mark.parametrize("count", [0, 1, 4, 6, 20])
def test_a_wrong_number_of_results_is_an_error(name, torch, monkeypatch, way, count):
    """torch does not count them: it crashed, or returned parts of its own stack."""
    if way == "python":
        monkeypatch.setattr(dispatch, "_missing", lambda: "torch_library_impl")

    @cl.function
    def pair(x):
        return cl.zeros_like(x), cl.zeros_like(x), x.shape[0]

    op = cl.frameworks.torch_op(name, pair)
    assert op.dispatch == way
    x = torch.ones(3)
    good = op(x)
    assert [*map(type, good)] == [torch.Tensor, torch.Tensor, int]

    def wrong(*_):
        return (good * 7)[:count]

    monkeypatch.setattr(type(op), "call_flat", wrong)
    op.rebuild = wrong  # so the function itself is not called
    dispatch.replace(op)
    op.set_way()
    for call in (op, op.overload):
        with pytest.raises(TypeError, match="but its operator returns 3 values"):
            call(x)


def test_the_letters_of_the_dispatch_are_those_of_torchs_schema(scale, name, monkeypatch):
    op = cl.frameworks.torch_op(name, scale)
    # torch would use a number as the address of a tensor.
    op.parameters = tuple(one._replace(type="Tensor") for one in op.parameters)
    op.outputs = ("SymInt", "float")
    bound = []
    monkeypatch.setattr(dispatch, "bind_operator", lambda *args: bound.append(args) or 0)
    dispatch.register(op, None)
    assert (bound[0][3], bound[0][5]) == ("TF", "T")


@pytest.mark.slow
@pytest.mark.memory
def test_a_fused_function_is_an_operator(name, torch):
    import culaunch.elementwise as ew

    @ew.fuse
    def gelu_like(x, gate):
        return x * ew.tanh(1.7 * x) * gate

    op = cl.frameworks.torch_op(name, gelu_like)
    assert op.schema == f"{name}(Tensor x, Tensor gate) -> Tensor"
    x, gate = torch.randn(3, 5), torch.randn(5)
    expected = x * torch.tanh(1.7 * x) * gate
    torch.testing.assert_close(op(x, gate), expected)
    torch.library.opcheck(op.overload, (x, gate))
    compiled = torch.compile(lambda x: op(x, gate) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), expected + 1)


def test_what_is_allocated_is_the_tensor_of_torch(scale, name, torch):
    """And not one more over its memory: CUDA graphs free only what their allocator made."""
    y = cl.frameworks.torch_op(name, scale)(torch.ones(5), 2.0)
    assert y.untyped_storage().resizable()
    assert torch.empty(1).untyped_storage().resizable()


def test_more_operators_than_there_are_places(scale, name, torch, monkeypatch):
    monkeypatch.setattr(dispatch, "bind_operator", lambda *_: None)
    op = cl.frameworks.torch_op(name, scale)
    assert op.dispatch == "python"
    assert "1024 operators" in op.why_python
    x = torch.arange(3.0)
    for call in (op, op.overload):
        assert torch.equal(call(x, 2.0), 2 * x)
        with pytest.raises(ValueError, match="x must be contiguous"):
            call(torch.ones(4, 5).t(), 2.0)
        with pytest.raises(cl.KernelNotFoundError, match="scale<int>"):
            call(torch.ones(3, dtype=torch.int32), 2.0)
