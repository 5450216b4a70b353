"""Functions that nobody registered, and other objects of ours, in regions of torch.compile."""

import collections
import functools
import textwrap

import pytest

import culaunch as cl
import culaunch.elementwise as ew

# The tracer and compiler of regions take seconds to import.
pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch"), pytest.mark.slow]

Pair = collections.namedtuple("Pair", "first rest")


@pytest.fixture
def compiled(torch):
    """Compile, and count the graphs and their operators."""
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()

    def make(region, **options):
        counter = CompileCounter()
        options = {"backend": counter, "fullgraph": True, "dynamic": True} | options
        done = torch.compile(region, **options)
        done.counter = counter
        return done

    return make


@pytest.fixture
def refused(torch):
    """Dynamo's message if it would have to break the graph."""
    from torch._dynamo.exc import Unsupported

    def say(region, *args):
        torch._dynamo.reset()
        with pytest.raises(Unsupported) as caught:
            torch.compile(region, fullgraph=True, backend="eager")(*args)
        return str(caught.value)

    return say


@pytest.mark.parametrize("backend", [None, "aot_eager"])
def test_a_function_is_in_the_graph_without_being_registered(scale, compiled, torch, backend):
    options = {} if backend is None else {"backend": backend}
    region = compiled(lambda x, factor: scale(x + 1, factor) * 2, **options)
    for shape in ((3, 4), (5, 7), (1, 600)):
        x = torch.randn(shape)
        torch.testing.assert_close(region(x, 3.0), 6 * (x + 1))
    if backend is None:
        assert region.counter.frame_count == 2  # the second one for factor


@pytest.mark.parametrize(
    "shape",
    [lambda a, b: (a, b), lambda a, b: (b, a), lambda a, b: (a, None, b), lambda a, b: ((a,), b),
     lambda a, b: (a,), lambda a, b: [a, b], lambda a, b: None],
)  # fmt: skip
def test_results_come_back_in_their_own_shape(compiled, torch, shape):
    @cl.function
    def made(x):
        return shape(cl.zeros_like(x), cl.zeros_like(x[1:]))

    expected = shape(torch.zeros(3), torch.zeros(2))
    found = compiled(lambda x: made(x + 1))(torch.ones(3))
    torch.testing.assert_close(found, expected, allow_subclasses=False)
    assert repr(found) == repr(expected)


def test_its_operator_has_a_name_that_says_what_it_is(scale, torch):
    graphs = []

    def keep(graph, _):
        graphs.append(graph)
        return graph.forward

    region = torch.compile(lambda x: scale(x, 2.0), fullgraph=True, backend=keep)
    assert torch.equal(region(torch.ones(3)), torch.full((3,), 2.0))
    (node,) = (node for node in graphs[0].graph.nodes if node.op == "call_function")
    assert node.target.namespace == "culaunch"
    assert "scale" in node.target.name()
    assert str(node.target._schema).endswith("(Tensor x, float factor) -> Tensor")
    torch.library.opcheck(node.target, (torch.randn(4), 3.0))


def test_functions_of_one_name_do_not_mix(kernels, compiled, torch):
    def make(factor):
        @cl.function
        def scaled(x):
            y = cl.empty_like(x)
            kernels["scale<float>"][1, 256](y, x, factor, x.size)
            return y

        return scaled

    first, second = make(2.0), make(3.0)
    x = torch.ones(4)
    assert torch.equal(compiled(lambda x: first(x) + second(x))(x), 5 * x)

    region = compiled(lambda f, x: f(x))
    assert [region(one, x)[0].item() for one in (first, second, first)] == [2, 3, 2]


def test_gradients_go_through_it(product, compiled, torch):
    region = compiled(lambda x, y: (product(x, y) * 2).sum(), backend="aot_eager")
    for size in (5, 9):
        x, y = (torch.randn(size, requires_grad=True) for _ in range(2))
        region(x, y).backward()
        torch.testing.assert_close(x.grad, 2 * y)
        torch.testing.assert_close(y.grad, 2 * x)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_results_are_put_together_as_the_function_does(kernels, compiled, torch, backend):
    @cl.function
    def everything(x, n, flag=True):
        y = cl.empty_like(x)
        kernels["scale<float>"][1, 256](y, x, 2.0, x.size)
        return {
            "y": y, "n": n + 1, "same": x, "flag": flag,
            "pair": Pair(cl.zeros((n,), "int32"), [None, (y.shape[0],)]),
        }  # fmt: skip

    def region(x):
        return everything(x + 1, x.shape[0])

    for size in (3, 5):
        x = torch.arange(float(size))
        found = compiled(region, backend=backend)(x)
        expected = region(x)
        assert found.keys() == expected.keys()
        assert torch.equal(found["y"], 2 * (x + 1))
        assert torch.equal(found["same"], x + 1)
        assert (found["n"], found["flag"]) == (size + 1, True)
        assert type(found["pair"]) is Pair
        assert found["pair"].first.shape == (size,)
        assert found["pair"].rest == [None, (size,)]


def test_an_argument_that_is_written_and_returned_is_the_same(kernels, compiled, torch):
    @cl.function
    def doubled(x):
        kernels["scale<float>"][1, 256](x, x, 2.0, x.size)
        return x

    def region(x):
        y = x + 1
        return doubled(y) + y

    assert torch.equal(compiled(region, backend="aot_eager")(torch.ones(3)), torch.full((3,), 8.0))
    x = torch.ones(3)
    compiled(doubled, backend="aot_eager")(x)
    assert torch.equal(x, torch.full((3,), 2.0))


def test_a_number_that_counts_a_loop(kernels, compiled, torch):
    @cl.function
    def repeated(x, n):
        y = x
        for _ in range(n):
            z = cl.empty_like(x)
            kernels["scale<float>"][1, 256](z, y, 2.0, x.size)
            y = z
        return y

    x = torch.ones(3)
    assert torch.equal(compiled(lambda x: repeated(x, 3))(x), 8 * x)
    assert torch.equal(compiled(lambda x: repeated(x, x.shape[0]))(x), 8 * x)


def test_what_holds_a_function_does_not_matter(scale, product, compiled, torch):
    class Model(torch.nn.Module):
        held = staticmethod(scale)

        def __init__(self):
            super().__init__()
            self.product = product

        def forward(self, x):
            half = functools.partial(scale, factor=0.5)
            return self.held(x, 2.0) + self.product(x, x) + half(x)

    assert torch.equal(compiled(Model())(torch.ones(3)), torch.full((3,), 3.5))


def test_a_function_of_a_library(kernels, compiled, torch, tmp_path):
    @cl.function
    def doubled(x):
        y = cl.empty_like(x)
        kernels["scale<float>"][1, 256](y, x, 2.0, x.size)
        return y

    doubled.specialize(x=cl.Array("float32", "n"))
    cl.ship.save([doubled], tmp_path / "doubled.culib")
    loaded = cl.ship.load_library(tmp_path / "doubled.culib").doubled
    region = compiled(lambda x: loaded(x + 1))
    for size in (3, 5):
        assert torch.equal(region(torch.ones(size)), torch.full((size,), 4.0))
    assert region.counter.frame_count == 1


def test_a_fused_function(compiled, torch):
    @ew.fuse
    def axpy(x, y):
        return 2 * x + y

    region = compiled(lambda x, y: axpy(x + 1, y))
    for size in (3, 5):
        assert torch.equal(region(torch.ones(size), torch.ones(size)), torch.full((size,), 5.0))
    assert (region.counter.frame_count, region.counter.op_count) == (1, 2)


def test_an_operator_is_called_by_its_object(scale, name, compiled, torch):
    op = cl.frameworks.torch_op(name, scale)
    region = compiled(lambda x: op(x, 2.0))
    assert torch.equal(region(torch.ones(3)), torch.full((3,), 2.0))
    assert region.counter.op_count == 1


def test_strict_export_needs_no_registration(scale, torch):
    class Model(torch.nn.Module):
        def forward(self, x):
            return scale(x, 2.0)

    sizes = {"x": {0: torch.export.Dim("rows")}}
    done = torch.export.export(Model(), (torch.ones(3, 4),), dynamic_shapes=sizes, strict=True)
    x = torch.randn(70, 4)
    assert torch.equal(done.module()(x), 2 * x)


def test_functions_of_numbers_are_of_use(compiled, torch):
    region = compiled(lambda x: x * cl.ceildiv(x.shape[0], 3) + cl.next_power_of_2(x.shape[0]))
    for size in (3, 5, 8):
        x = torch.ones(size)
        expected = -(-size // 3) + cl.next_power_of_2(size)
        assert torch.equal(region(x), torch.full((size,), float(expected)))


# ---- functions that are not operators


def no_arrays(n: int):
    return n + 1


def view(x):
    return x[1:]


def complex_number(x, factor=1j):
    return cl.empty_like(x)


@pytest.mark.parametrize(
    ("body", "args", "reason"),
    [
        (no_arrays, (3,), "must have an array parameter"),
        (view, (), "a view of an argument"),
        (complex_number, (), "argument factor is 1j. A torch operator accepts"),
        (view, (1, 2), "takes 1 positional argument but 3 were given"),
    ],
)
def test_a_function_that_is_no_operator_breaks_the_graph(torch, refused, body, args, reason):
    function = cl.function(body)

    def region(x):
        values = args if body is no_arrays else (x, *args)
        return function(*values) + x.sum()

    said = refused(region, torch.ones(3))
    assert f"the function {body.__name__} of culaunch, which is not a torch operator" in said
    assert reason in said


def test_a_torch_with_other_messages_tells_the_reason_too(refused, torch, monkeypatch):
    function = cl.function(view)
    monkeypatch.setattr(torch._dynamo.exc, "unimplemented", lambda msg: None)
    said = refused(lambda x: function(x), torch.ones(3))
    assert said.startswith("torch.compile reached a call of the function view of culaunch, which")
    assert "a view of an argument" in said


def test_where_the_graph_breaks_the_function_is_called(compiled, torch):
    function = cl.function(view)
    region = compiled(lambda x: function(x + 1) * 2, fullgraph=False)
    for _ in range(2):
        assert torch.equal(region(torch.ones(3)), torch.full((2,), 4.0))
    assert region.counter.frame_count == 2


@pytest.mark.parametrize("what", ["kernel", "module", "launcher"])
def test_other_objects_break_it_once_and_say_what_to_do(kernels, compiled, torch, refused, what):
    kernel = kernels["scale<float>"]
    launcher = kernel[1, 256]
    if what == "kernel":

        def region(x):
            y = x + 1
            kernel[1, 256](y, y, 2.0, x.numel())
            return y * 2

    elif what == "module":

        def region(x):
            y = x + 1
            kernels["scale<float>"][1, 256](y, y, 2.0, x.numel())
            return y * 2

    else:

        def region(x):
            y = x + 1
            launcher(y, y, 2.0, x.numel())
            return y * 2

    said = refused(region, torch.ones(3))
    assert f"{what} " in said
    assert "Launch it in the body of a cl.function" in said
    broken = compiled(region, fullgraph=False)
    for _ in range(3):
        assert torch.equal(broken(torch.ones(3)), torch.full((3,), 8.0))
    assert broken.counter.frame_count == 2


def test_no_function_of_ours_is_traced(refused, torch):
    said = refused(lambda x: (cl.load(b"nothing"), x + 1), torch.ones(3))
    assert "`load`" in said
    assert "should not be traced" in said


ORDERS = {
    "culaunch first": "import culaunch as cl; cl.function; import torch",
    "Dynamo first": "import torch._dynamo; import culaunch as cl",
}


@pytest.mark.parametrize("order", ORDERS)
def test_it_does_not_matter_what_is_imported_first(order):
    import os
    import subprocess
    import sys

    code = f"""
        {ORDERS[order]}
        before = list(__import__("sys").meta_path)

        @cl.function
        def made(x):
            return cl.zeros_like(x)

        region = torch.compile(lambda x: made(x) + 1, fullgraph=True, backend="eager")
        assert region(torch.zeros(3)).tolist() == [1, 1, 1]
        spec = torch._dynamo.__spec__
        assert type(spec.loader).__module__.startswith("_frozen_importlib"), spec
        names = [type(one).__name__ for one in __import__("sys").meta_path]
        assert "_Finder" not in names, names
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        check=False, capture_output=True, text=True,
        env={**os.environ, "CULAUNCH_DRIVER": "emulator"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_another_dynamo_is_left_as_it_is(monkeypatch, torch):
    """If its table is not as known, it breaks the graph with its own words."""
    from torch._dynamo.variables.builder import VariableBuilder

    from culaunch._launch.launches import dynamo

    monkeypatch.setattr(dynamo, "_told", set())
    monkeypatch.setattr(VariableBuilder, "_type_dispatch_impl", None)
    dynamo.tell({int: dynamo.Region("break", "number")}, {})
    assert dynamo._told == set()
