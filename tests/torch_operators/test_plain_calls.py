"""Where torch's dispatcher would only call the function, an operator does not ask it."""

import pytest

import culaunch as cl

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch")]


@pytest.fixture
def x(torch):
    return torch.arange(1.0, 4)


@pytest.fixture
def passed(torch, monkeypatch):
    """Count the calls that go to the dispatcher."""
    seen = []

    def dispatcher(operator):
        def call(*args, **keywords):
            seen.append(operator.name)
            return operator.overload(*args, **keywords)

        return call

    monkeypatch.setattr(cl.frameworks.TorchOperator, "_dispatcher", dispatcher)
    return seen


def test_a_plain_call_goes_past_the_dispatcher(scale, product, everything, name, passed, x, torch):
    op, other = cl.frameworks.torch_op(name, scale), cl.frameworks.torch_op(f"{name}b", product)
    several = cl.frameworks.torch_op(f"{name}c", everything)
    assert torch.equal(op(x, 2.0), 2 * x)
    assert torch.equal(other(x, x), x * x)
    result = several(x, None)
    assert type(result) is tuple
    assert len(result) == 5
    with torch.no_grad():
        assert torch.equal(op(torch.nn.Parameter(x), 2.0), 2 * x)
        assert torch.equal(other(x.clone().requires_grad_(), x), x * x)
    with torch.inference_mode():
        assert torch.equal(op(x, 2.0), 2 * x)
        assert op(x, 2.0).is_inference()
    assert passed == []


def test_the_dispatcher_calls_the_function_at_once(scale, scale_in_place, product, name, x, torch):
    """With autograd and the counters of versions done, and without Python."""
    ops = [
        cl.frameworks.torch_op(f"{name}{one.__name__}", one)
        for one in (scale, scale_in_place, product)
    ]
    for op in ops:
        op._kernels = [(kernel, None) for kernel, _ in op._kernels]  # these are called in Python
        op.set_way()
    first, second, third = (op.overload for op in ops)
    assert torch.equal(first(x, 2.0), 2 * x)
    assert torch.equal(third(x, x), x * x)
    second(x, 2.0)
    with torch.inference_mode():
        second(x, 2.0)
    assert (x._version, x.tolist()) == (2, [4.0, 8.0, 12.0])
    for op, more in zip(ops, (2.0, 2.0, x), strict=True):
        with pytest.raises(TypeError, match=r"'NoneType' object is not callable|requires grad"):
            op.overload(x.clone().requires_grad_(), more)


def test_what_is_not_plain_goes_to_the_dispatcher(scale, product, name, passed, x, torch):
    op, other = cl.frameworks.torch_op(name, scale), cl.frameworks.torch_op(f"{name}b", product)

    def went(call):
        passed.clear()
        result = call()
        assert len(passed) == 1
        return result

    assert torch.equal(went(lambda: op(x, factor=2.0)), 2 * x)
    assert torch.equal(went(lambda: op(x, 2)), 2 * x)  # the schema makes a float of it
    assert went(lambda: op(x.to("meta"), 2.0)).is_meta
    assert torch.equal(went(lambda: op(torch._neg_view(x), 2.0)), -2 * x)
    assert went(lambda: other(x.clone().requires_grad_(), x)).requires_grad
    subclass = type("Subclass", (torch.Tensor,), {})
    assert type(went(lambda: op(x.as_subclass(subclass), 2.0))) is subclass
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert went(lambda: op(x, 2.0)).dtype is torch.float32  # an operator has no rule for it
    with torch.device("cpu"):
        went(lambda: op(x, 2.0))


def test_modes_see_the_operator(scale, name, passed, x, torch):
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    op = cl.frameworks.torch_op(name, scale)
    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    for mode in (Functions(), Dispatch()):
        with mode:
            op(x, 2.0)
        assert op.overload in seen
        seen.clear()
    op(x, 2.0)
    assert seen == []


def test_the_profiler_sees_the_operator(scale, name, x, torch):
    op = cl.frameworks.torch_op(name, scale)
    op(x, 2.0)
    with torch.autograd.profiler.profile() as profile:
        op(x, 2.0)
    assert name in [event.name for event in profile.function_events]


def test_what_torch_traces_has_the_operator(scale, name, x, torch):
    from torch.fx.experimental.proxy_tensor import make_fx

    op = cl.frameworks.torch_op(name, scale)
    for mode in ("real", "fake", "symbolic"):
        graph = make_fx(lambda x: op(x, 2.0), tracing_mode=mode)(x)
        assert op.overload in [node.target for node in graph.graph.nodes]


def test_threads_are_plain_of_their_own(scale, name, passed, x, torch):
    from concurrent.futures import ThreadPoolExecutor

    op = cl.frameworks.torch_op(name, scale)
    with torch.autocast("cpu", dtype=torch.bfloat16), ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: op(x, 2.0), range(8)))
        assert passed == []
        op(x, 2.0)
    assert len(passed) == 1
    assert all(torch.equal(one, 2 * x) for one in results)


def test_without_what_tells_of_a_thread_all_goes_to_the_dispatcher(scale, product, name, torch):
    """The way is the dispatcher's until one is set past it."""
    from culaunch import _core

    native = _core.TorchOperator()
    with pytest.raises(RuntimeError, match="not registered"):
        native()
    native._set_way(
        None, lambda *args, **keywords: (args, keywords), "TF", 2, False, False, (), False
    )
    assert native(1, b=2) == ((1,), {"b": 2})
    missing = _core.open_plain_calls(("/none", "/none"), 1, (), 0, None)
    assert missing in (None, "torch's libraries")


def test_a_function_that_nobody_registered_is_seen(scale, scale_in_place, x, torch):
    """As an operator of its own: what torch traces lacks nothing that was done."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def region(x):
        y = scale(x, 2.0)
        scale_in_place(y, 3.0)
        return y

    for mode in ("real", "fake", "symbolic"):
        graph = make_fx(region, tracing_mode=mode)(x)
        named = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
        assert len([one for one in named if one.startswith("culaunch.")]) == 2
        assert torch.equal(graph(2 * x), 12 * x)
    assert torch.equal(region(x), 6 * x)


@pytest.mark.filterwarnings("ignore:`torch.jit.trace")
def test_what_torch_script_traces_has_the_function(scale, x, torch):
    traced = torch.jit.trace(lambda x: scale(x + 1, 2.0), (x,))
    assert torch.equal(traced(2 * x), 2 * (2 * x + 1))


def test_a_function_that_is_no_operator_runs_in_a_mode(x, torch):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    @cl.function
    def rest(x):
        return x[1:]

    with Mode():
        assert torch.equal(rest(x), x[1:])
