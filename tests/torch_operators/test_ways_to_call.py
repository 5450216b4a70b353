"""Each way to call a function, under what torch does with calls: never wrong without an error."""

import pytest

import culaunch as cl
import culaunch.elementwise as ew

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch")]

WAYS = ("function", "operator", "packet", "overload")


@pytest.fixture(params=WAYS)
def way(request, name, torch):
    """Make of a function what is called."""

    def make(function):
        if request.param == "function":
            return function
        op = cl.frameworks.torch_op(name, function)
        packet = getattr(torch.ops.culaunch_test, name.partition("::")[2])
        return {"operator": op, "packet": packet, "overload": op.overload}[request.param]

    make.name = request.param
    return make


@pytest.fixture
def x(torch):
    return torch.arange(1.0, 4)


@pytest.fixture
def gathered(kernels):
    """A function of a list of tensors, with a gradient for each."""

    @cl.function
    def gathered(xs: list[cl.Array("float32", "n")], w: cl.Array("float32", "n")):
        y = cl.empty_like(w)
        kernels["multiply<float>"][1, 64](y, xs[0], xs[1], w.size)
        return y

    @gathered.backward
    def gathered_backward(grad, xs):
        return [grad * xs[1], grad * xs[0]], None

    return gathered


def test_gradients(product, way, x, torch):
    call = way(product)
    func = torch.func

    def square(x):
        return call(x, x)

    def total(x):
        return square(x).sum()

    assert torch.equal(func.grad(total)(x), 2 * x)
    assert torch.equal(func.vjp(square, x)[1](x)[0], 2 * x**2)
    assert torch.equal(func.jacrev(square)(x), torch.diag(2 * x))
    rows = torch.stack([x, x + 1])
    assert torch.equal(torch.vmap(func.grad(total))(rows), 2 * rows)
    assert torch.equal(func.grad(lambda rows: torch.vmap(square)(rows).sum())(rows), 2 * rows)


def test_gradients_of_lists(gathered, way, x, torch):
    call = way(gathered)
    gradient = torch.func.grad(lambda a, b: call([a, b], a).sum(), argnums=(0, 1))
    assert all(map(torch.equal, gradient(x, x + 1), (x + 1, x)))
    rows = torch.stack([x, x + 1])
    of_rows = torch.vmap(gradient, in_dims=(0, None))(rows, x)
    assert all(map(torch.equal, of_rows, (torch.stack([x, x]), rows)))


def test_there_is_no_derivative(scale, way, x, torch):
    call = way(scale)

    def region(x):
        return call(x, 2.0)

    for transformed in (torch.func.grad(lambda x: region(x).sum()), torch.func.jacrev(region)):
        with pytest.raises(TypeError, match="has no gradient, so autograd would use zero"):
            transformed(x)
    with pytest.raises(TypeError, match=r"has no gradient|requires grad"):
        region(x.requires_grad_()).sum().backward()


# torch compiles decompositions for jvp with what it has deprecated.
def test_there_is_no_tangent(product, way, x, torch):
    import torch.autograd.forward_ad as forward

    call = way(product)

    def region(x):
        return call(x, torch.ones(3))

    functions = (
        lambda: torch.func.jvp(region, (x,), (x,)),
        lambda: torch.func.jacfwd(region)(x),
        lambda: torch.func.hessian(lambda x: region(x).sum())(x),
        lambda: torch.func.linearize(region, x),
        lambda: torch.autograd.functional.jacobian(
            region, x, strategy="forward-mode", vectorize=True
        ),
    )
    for function in functions:
        with pytest.raises(TypeError, match=r"no forward-mode derivative"):
            function()
    with forward.dual_level():
        with pytest.raises(TypeError, match=r"no forward-mode derivative"):
            region(forward.make_dual(x, x))
        assert torch.equal(region(x[:]), x)  # a view, without a tangent


@pytest.mark.parametrize("what", ["a function", "a list", "a fused function"])
def test_an_argument_with_a_tangent_is_named(scale_in_place, gathered, what, x, torch):
    import torch.autograd.forward_ad as forward

    fused = ew.fuse(lambda a, b: a * b)
    calls = {
        "a function": (lambda x: scale_in_place(x, 2.0), "scale_in_place: argument x"),
        "a list": (lambda x: gathered([torch.ones(3), x], torch.ones(3)), "argument xs"),
        "a fused function": (lambda x: fused(torch.ones(3), x), "argument b"),
    }
    call, named = calls[what]
    with forward.dual_level():
        dual = forward.make_dual(x, torch.ones(3))
        with pytest.raises(TypeError, match=f"{named} has a tangent, .*cl.frameworks.torch_op"):
            call(dual)
        # Where torch computes no tangents, as in an autograd.Function's forward, it has none.
        with forward._set_fwd_grad_enabled(False):
            call(dual)


def test_a_function_of_torch_may_have_the_tangent(scale, x, torch):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return scale(x, 2.0)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad):
            return scale(grad.contiguous(), 2.0)

        @staticmethod
        def jvp(ctx, tangent):
            return scale(tangent, 2.0)

    torch.autograd.gradcheck(Doubled.apply, (x.double().requires_grad_(),), check_forward_ad=True)


def writing_after(call):
    """Write what a product was computed of, and what was computed."""

    def of_an_argument(x, weight):
        y = x * weight
        call(weight, 2.0)
        return y.sum()

    def of_a_result(x, _):
        y = x * 3
        call(y, 2.0)
        return y.sum()

    return of_an_argument, of_a_result


def test_what_is_written_is_noticed(scale_in_place, way, x, torch):
    of_an_argument, of_a_result = writing_after(way(scale_in_place))
    grad, rows = torch.func.grad, torch.ones(2, 3)
    for function in (grad(of_an_argument), grad(lambda x, w: grad(of_an_argument)(x, w).sum())):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            function(x, x.clone())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.vmap(grad(of_an_argument))(rows, rows.clone())
    for function in (grad(of_a_result), torch.vmap(grad(of_a_result))):
        with pytest.raises(TypeError, match="writes x and has no gradient, so autograd would"):
            function(rows, rows)


def test_what_is_written_must_be_given(scale_in_place, way, x, torch):
    call = way(scale_in_place)
    outside = x.clone()

    def region(x):
        y = (x * outside).sum()
        call(outside, 2.0)
        return y

    with pytest.raises(TypeError, match="that is not an argument of this transformation"):
        torch.func.grad(region)(x)
    with pytest.raises(TypeError, match=r"not an argument of this torch\.func\.functionalize"):
        torch.func.functionalize(region)(x)
    assert torch.equal(outside, x)


def test_a_gradient_of_what_is_written_is_refused(scale_in_place, way, x, torch):
    call = way(scale_in_place)
    leaf = x.requires_grad_()
    for tensor in (leaf, leaf * 2):
        with pytest.raises(TypeError, match=r"requires grad|has no gradient"):
            call(tensor, 2.0)
    with torch.no_grad():
        call(leaf, 2.0)
    assert torch.equal(leaf.detach(), 2 * torch.arange(1.0, 4))


def test_functionalize_makes_another_tensor(scale_in_place, way, x, torch):
    call = way(scale_in_place)

    def region(x):
        y = x + 0
        call(y, 2.0)
        call(y[1:], 3.0)
        return y

    assert torch.func.functionalize(region)(x).tolist() == [2.0, 12.0, 18.0]
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_a_batch_of_keywords_and_of_nothing(kernels, way, torch):
    @cl.function
    def masked(x, *, w: cl.Array("float32", "n")):
        y = cl.empty_like(x)
        kernels["multiply<float>"][1, 64](y, x, w, x.size)
        return y

    call = way(masked)
    rows = torch.arange(6.0).reshape(2, 3)
    found = torch.vmap(lambda x, w: call(x, w=w))(rows, rows)
    assert torch.equal(found, rows * rows)
    assert torch.vmap(lambda x: call(x, w=x))(rows[:0]).shape == (0, 3)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager"])
@pytest.mark.parametrize("way", WAYS[:3], indirect=True)
def test_a_compiled_region_loses_no_gradient(scale, scale_in_place, way, backend, x, torch):
    """Neither where torch traces the graph of gradients, nor where that graph runs."""
    call = way(scale)
    torch._dynamo.reset()
    region = torch.compile(lambda x: (call(x * 2, 2.0) * x).sum(), backend=backend)
    with pytest.raises(Exception, match=r"has no gradient|requires grad"):
        region(x.clone().requires_grad_()).backward()
    assert region(x) == (4 * x * x).sum()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager"])
@pytest.mark.parametrize("way", WAYS[:3], indirect=True)
@pytest.mark.filterwarnings("ignore:Error detected in:UserWarning", "ignore:The .grad:UserWarning")
def test_a_compiled_region_notices_what_is_written(scale_in_place, way, backend, x, torch):
    call = way(scale_in_place)
    kept, result = writing_after(call)

    def argument(x, weight):
        call(weight, 2.0)
        return (x * weight).sum()

    torch._dynamo.reset()
    with pytest.raises(Exception, match="modified by an inplace operation"):
        torch.compile(kept, backend=backend)(x.clone().requires_grad_(), x.clone()).backward()
    leaf = x.clone().requires_grad_()
    for function, weight in ((result, x.clone()), (argument, leaf * 1)):
        with pytest.raises(Exception, match=r"has no gradient|requires grad"):
            torch.compile(function, backend=backend)(leaf, weight).backward()
    weight = x.clone()
    torch.compile(argument, backend=backend)(leaf, weight).backward()
    assert torch.equal(leaf.grad, 2 * x)
    assert torch.equal(weight, 2 * x)


@pytest.mark.parametrize("way", WAYS[1:], indirect=True)
def test_checkpoints_and_batched_gradients(product, way, x, torch):
    from torch.utils.checkpoint import checkpoint

    call = way(product)
    for reentrant in (False, True):
        leaf = x.clone().requires_grad_()
        checkpoint(
            lambda leaf: call(leaf.exp(), leaf).sum(), leaf, use_reentrant=reentrant
        ).backward()
        torch.testing.assert_close(leaf.grad, x.exp() * (1 + x))
    found = torch.autograd.functional.jacobian(lambda x: call(x, x), x, vectorize=True)
    assert torch.equal(found, torch.diag(2 * x))


@pytest.mark.parametrize("mode", ["inference", "autocast", "deterministic"])
def test_modes_change_nothing(scale, scale_in_place, way, mode, x, torch):
    call = way(scale if mode != "deterministic" else scale_in_place)
    if mode == "inference":
        with torch.inference_mode():
            assert torch.equal(call(x, 2.0), 2 * x)
    elif mode == "autocast":
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(call(x, 2.0), 2 * x)
    else:
        torch.use_deterministic_algorithms(True)
        try:
            call(x, 2.0)
        finally:
            torch.use_deterministic_algorithms(False)
        assert x.tolist() == [2.0, 4.0, 6.0]


def test_a_profiler_sees_one_call(scale, way, x, torch):
    call = way(scale)
    with torch.profiler.profile(acc_events=True) as profile:
        call(x, 2.0)
    count = sum("culaunch_test::" in one.key for one in profile.key_averages())
    assert count == (0 if way.name == "function" else 1)
    assert all(one.count == 1 for one in profile.key_averages() if "culaunch_test" in one.key)


@pytest.mark.slow
def test_torchs_own_oracles(product, scale_in_place, everything, name, torch):
    op = cl.frameworks.torch_op(name, product)
    x, y = (torch.randn(5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    check = torch.autograd.gradcheck
    assert check(op, (x, y), check_batched_grad=True, check_undefined_grad=True)
    assert check(op.overload, (x, y), check_batched_grad=True)
    for function, args in (
        (scale_in_place, (torch.randn(5), 2.0)),
        (everything, (torch.randn(5),)),
    ):
        other = cl.frameworks.torch_op(f"{name}{function.__name__}", function)
        torch.library.opcheck(other.overload, args)
    torch.library.opcheck(op.overload, (x, y))
