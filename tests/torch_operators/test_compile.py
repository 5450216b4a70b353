"""Operators in what torch compiles and exports."""

import pytest

import culaunch as cl

# The tracer and compiler of regions take seconds to import.
pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch"), pytest.mark.slow]


@pytest.fixture
def plain_cpp():
    """Let Inductor's C++ be as it is without vectors and precompiled headers, for their time."""
    from torch._inductor import config

    changes = {"cpp_cache_precompile_headers": False, "cpp.vec_isa_ok": False}
    with config.patch({**changes, "aot_inductor.precompile_headers": False}):
        yield


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_graph_has_no_break(scale, name, torch, backend):
    op = cl.frameworks.torch_op(name, scale)

    @torch.compile(fullgraph=True, dynamic=True, backend=backend)
    def compiled(x, factor):
        return op(x * 2, factor) + getattr(torch.ops.culaunch_test, name.partition("::")[2])(x, 1.0)

    for shape in ((3, 4), (5, 7), (1, 600)):
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x, 3.0), 7 * x)


@pytest.mark.needs("g++")
@pytest.mark.usefixtures("plain_cpp")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of inductor's own imports
def test_inductor_calls_it(product, name, torch):
    op = cl.frameworks.torch_op(name, product)

    @torch.compile(fullgraph=True, dynamic=True)
    def compiled(x, y):
        return op(x + 1, y * 2).sum()

    x, y = (torch.randn(100, requires_grad=True) for _ in range(2))
    result = compiled(x, y)
    torch.testing.assert_close(result, ((x + 1) * y * 2).sum())
    result.backward()
    torch.testing.assert_close(x.grad, 2 * y)


def test_what_is_exported_has_a_free_size(scale, name, torch):
    op = cl.frameworks.torch_op(name, scale)

    class Model(torch.nn.Module):
        def forward(self, x):
            return op(x, 2.0)

    sizes = {"x": {0: torch.export.Dim("rows")}}
    exported = torch.export.export(Model(), (torch.ones(3, 4),), dynamic_shapes=sizes)
    (node,) = (node for node in exported.graph.nodes if node.op == "call_function")
    assert node.target is op.overload
    x = torch.randn(700, 4)
    assert torch.equal(exported.module()(x), 2 * x)


@pytest.mark.needs("g++")
@pytest.mark.usefixtures("plain_cpp")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # inductor's own
def test_a_model_that_is_compiled_ahead_of_time(scale, scale_in_place, name, torch, tmp_path):
    """AOTInductor calls operators by their names: they are registered where it loads."""
    op, writing = (
        cl.frameworks.torch_op(name, scale),
        cl.frameworks.torch_op(f"{name}b", scale_in_place),
    )

    class Model(torch.nn.Module):
        def forward(self, x):
            y = op(x + 1, 2.0)
            writing(y, 3.0)
            return y * 2

    sizes = {"x": {0: torch.export.Dim("rows")}}
    exported = torch.export.export(Model(), (torch.ones(3, 4),), dynamic_shapes=sizes)
    path = torch._inductor.aoti_compile_and_package(
        exported,
        package_path=str(tmp_path / "model.pt2"),
        inductor_configs={"aot_inductor.compile_wrapper_opt_level": "O0"},  # for the time it takes
    )
    model = torch._inductor.aoti_load_package(path)
    for rows in (3, 70):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(model(x), (x + 1) * 12)


def test_opcheck_of_a_function(scale, name, torch):
    op = cl.frameworks.torch_op(name, scale)
    for x in (torch.randn(5), torch.randn(2, 3, 4, dtype=torch.float64)):
        torch.library.opcheck(op.overload, (x, 2.0))


def test_opcheck_of_what_writes_its_argument(scale_in_place, name, torch):
    op = cl.frameworks.torch_op(name, scale_in_place)
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


# ---- sizes that are unknown when a graph is made


@pytest.fixture
def rows(kernels):
    @cl.function
    def rows(x: cl.Array("float32", "n"), y: cl.Array("float32", "n"), count: int):
        cl.check(count > 0, "count must be positive")
        z = cl.zeros((count, x.shape[0]), x.dtype)
        cl.launch_if(x.size > 0, kernels["multiply<float>"][1, 256], z, x, y, x.size)
        return z

    return rows


@pytest.fixture
def unknown_sizes(torch):
    from torch._dynamo import config

    torch._dynamo.reset()
    with config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        yield


@pytest.mark.usefixtures("unknown_sizes")
def test_sizes_of_which_nothing_is_known(rows, name, torch):
    op = cl.frameworks.torch_op(name, rows)
    assert op.schema.partition("(")[2] == "Tensor x, Tensor y, SymInt count) -> Tensor"

    @torch.compile(fullgraph=True, backend="aot_eager")
    def compiled(x, y):
        return op(x[x > 0], y[y > 0], x[0].int().item())

    x = torch.tensor([2.0, -1, 3])
    assert torch.equal(compiled(x, 2 * x), torch.tensor([[8.0, 18], [0, 0]]))
    x[2] = -1
    assert torch.equal(compiled(x, 2 * x), torch.tensor([[8.0], [0]]))
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        compiled(x, torch.ones(3))
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        compiled(x - 2, x - 2)


def test_a_number_of_a_region_may_be_a_symbol(rows, name, torch):
    op = cl.frameworks.torch_op(name, rows)

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def compiled(x, count):
        return op(x, x, count) + op(x, x, count=x.shape[0])[0]

    for count in (3, 4, 7):
        x = torch.full((count,), 2.0)
        assert compiled(x, count + 1).shape == (count + 1, count)
    with pytest.raises(Exception, match="count must be positive"):
        compiled(x, -1)


def test_what_is_exported_takes_sizes_of_which_nothing_is_known(rows, name, torch):
    op = cl.frameworks.torch_op(name, rows)

    class Model(torch.nn.Module):
        def forward(self, x):
            y = x[x > 0]
            return op(y, y, x.shape[0])

    sizes = {"x": {0: torch.export.Dim("rows", min=2)}}
    exported = torch.export.export(Model(), (torch.ones(3),), dynamic_shapes=sizes)
    x = torch.tensor([2.0, -1, 3, 1])
    assert torch.equal(exported.module()(x)[0], torch.tensor([4.0, 9, 1]))
    assert exported.module()(x).shape == (4, 3)


def test_what_writes_an_argument_may_return_a_new_array(kernels, name, torch):
    @cl.function
    def both(x):
        y = cl.empty_like(x)
        kernels["scale<float>"][1, 64](y, x, 3.0, x.size)
        kernels["scale<float>"][1, 64](x, x, 2.0, x.size)
        return y

    op = cl.frameworks.torch_op(name, both)
    assert op.schema == f"{name}(Tensor(a!) x) -> Tensor"
    x = torch.ones(4)
    assert torch.equal(op(x), torch.full((4,), 3.0))
    assert torch.equal(x, torch.full((4,), 2.0))
    torch.library.opcheck(op.overload, (torch.randn(5),))

    @cl.function
    def counted(x):
        kernels["scale<float>"][1, 64](x, x, 2.0, x.size)
        return x.shape[0]

    with pytest.raises(TypeError, match="writes x and returns numbers"):
        cl.frameworks.torch_op(f"{name}b", counted)
