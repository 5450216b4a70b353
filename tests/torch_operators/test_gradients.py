"""Gradients of operators."""

import pytest

import culaunch as cl

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch")]


@pytest.mark.slow
def test_gradients_are_another_functions(product, name, torch):
    op = cl.frameworks.torch_op(name, product)
    x, y = (torch.randn(5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(op, (x, y))
    torch.library.opcheck(op.overload, (x, y))
    op(x, y).sum().backward()  # of a gradient that is one number, expanded
    assert torch.equal(x.grad, y)
    assert torch.equal(y.grad, x)


@pytest.mark.slow
def test_gradients_of_a_compiled_graph(product, name, torch):
    op = cl.frameworks.torch_op(name, product)

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def compiled(x, y):
        return (op(x, y) * 2).sum()

    for size in (5, 9):
        x, y = (torch.randn(size, requires_grad=True) for _ in range(2))
        compiled(x, y).backward()
        torch.testing.assert_close(x.grad, 2 * y)
        torch.testing.assert_close(y.grad, 2 * x)


def test_a_backward_function_may_come_later(scale, name, torch):
    op = cl.frameworks.torch_op(name, scale)

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

    op = cl.frameworks.torch_op(name, scale)
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: op(x, 2.0), (x,))


@pytest.fixture
def halved(kernels):
    """A function whose backward function takes what another forward function saved."""

    def scaled(x, factor):
        y = cl.empty_like(x)
        kernels[f"scale<{x.dtype}>"][cl.ceildiv(x.size, 64), 64](y, x, factor, x.size)
        return y

    @cl.function
    def halved(x: cl.Array("float32 | float64", "n"), *, by: float = 0.5):
        return scaled(x, by), scaled(x, 2 * by)

    @cl.function
    def forward(x: cl.Array("float32 | float64", "n"), *, by: float = 0.5):
        return scaled(x, by), scaled(x, 2 * by), scaled(x, 10.0)

    @cl.function
    def backward(grad_1, saved, x):
        y = cl.empty_like(x)
        kernels[f"multiply<{x.dtype}>"][cl.ceildiv(x.size, 64), 64](y, grad_1, saved, x.size)
        return y

    halved.backward(backward, forward=forward)
    return halved


def test_saved_values_of_another_forward_function(halved, name, torch):
    op = cl.frameworks.torch_op(name, halved)
    x = torch.arange(1.0, 6.0, requires_grad=True)
    for results in (op(x, by=2.0), op(x)):
        # The gradient has what `forward` saved. It is not a result, and has no gradient.
        assert isinstance(results, tuple)
        assert len(results) == 2
        (found,) = torch.autograd.grad(results[1], x, torch.full((5,), 3.0), retain_graph=True)
        assert torch.equal(found, 30 * x)
        (found,) = torch.autograd.grad(results[0].sum(), x)  # without a gradient of the other
        assert torch.equal(found, torch.zeros(5))
    plain = op(x.detach(), by=2.0)
    assert [one.tolist() for one in plain] == [(2 * x).tolist(), (4 * x).tolist()]


def test_saved_values_in_torch_func(halved, name, torch):
    op = cl.frameworks.torch_op(name, halved)
    x = torch.arange(6.0).reshape(2, 3)
    found = torch.vmap(torch.func.grad(lambda x: op(x)[1].sum()))(x)
    assert torch.equal(found, 10 * x)


@pytest.fixture(params=["first", "second", "neither"])
def half_differentiable(request, kernels):
    """A product whose backward function has a gradient for one of its arguments, or for none."""

    @cl.function
    def product_of(x: cl.Array("float64", "n"), y: cl.Array("float64", "n")):
        z = cl.empty_like(x)
        kernels["multiply<double>"][1, 256](z, x, y, x.size)
        return z

    @cl.function
    def first(grad, y):
        return product_of(grad, y), None

    @cl.function
    def second(grad, x):
        return None, product_of(grad, x)

    @cl.function
    def neither(grad):
        return None, None

    product_of.backward({"first": first, "second": second, "neither": neither}[request.param])
    return product_of, request.param


def gradients_of(call, torch, which):
    """The gradients for both arguments of a product, and those that it should have."""
    x, y = (torch.randn(4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    call(x, y).sum().backward()
    expected = {"first": (y, None), "second": (None, x), "neither": (None, None)}[which]
    return [one if one is None else one.tolist() for one in (x.grad, y.grad, *expected)]


def test_a_gradient_may_be_none(half_differentiable, name, torch):
    function, which = half_differentiable
    op = cl.frameworks.torch_op(name, function)
    dx, dy, *expected = gradients_of(op, torch, which)
    assert [dx, dy] == expected
    # The operator of the backward function gives what its schema says, however it is called.
    found = torch.ops.culaunch_test
    backward = getattr(found, f"{name.partition('::')[2]}_backward").default
    tensors = [torch.ones(3, dtype=torch.float64)] * (1 if which == "neither" else 2)
    result = backward(*tensors)
    assert result is None if which == "neither" else result.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_gradient_may_be_none_in_a_compiled_graph(half_differentiable, name, torch, backend):
    torch._dynamo.reset()  # which compiles one piece of code eight times at most
    function, which = half_differentiable
    op = cl.frameworks.torch_op(name, function)
    compiled = torch.compile(lambda x, y: op(x, y), fullgraph=True, backend=backend)
    dx, dy, *expected = gradients_of(compiled, torch, which)
    # A compiled graph has zeros if there is no gradient.
    assert [one or [0.0] * 4 for one in (dx, dy)] == [one or [0.0] * 4 for one in expected]
    x, y = (torch.randn(4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    torch.library.opcheck(op.overload, (x, y))


def test_without_a_backward_function_there_is_no_gradient(scale, name, torch):
    op = cl.frameworks.torch_op(name, scale)
    with pytest.raises(TypeError, match="requires grad"):
        op(torch.ones(3, requires_grad=True), 2.0)
    with torch.no_grad():
        assert op(torch.ones(3, requires_grad=True), 2.0).sum() == 6


def test_a_gradient_for_each_output_and_the_outputs(kernels, name, torch):
    @cl.function
    def both(x):
        y, z = cl.empty_like(x), cl.empty_like(x)
        kernels["scale<double>"][1, 64](y, x, 2.0, x.size)
        kernels["multiply<double>"][1, 64](z, x, x, x.size)
        return y, z

    @both.backward
    def both_backward(grad_0, grad_1, out_0, x):
        assert torch.equal(out_0, 2 * x)
        return 2 * grad_0 + 2 * grad_1 * x

    op = cl.frameworks.torch_op(name, both)
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(op, (x,))
    op(x)[1].sum().backward()  # the other gradient is zeros
    assert torch.equal(x.grad, 2 * x)


def test_the_backward_function_is_an_operator(product, name, torch):
    cl.frameworks.torch_op(name, product)
    backward = getattr(torch.ops.culaunch_test, name.partition("::")[2] + "_backward").default
    assert str(backward._schema).endswith("(Tensor grad, Tensor x, Tensor y) -> (Tensor, Tensor)")
    torch.library.opcheck(backward, tuple(torch.randn(3, 4)[:3]))


def test_what_writes_its_arguments_has_no_gradient(scale_in_place, name):
    scale_in_place.backward(lambda grad: grad)
    with pytest.raises(TypeError, match="writes its argument x, and torch computes no gradients"):
        cl.frameworks.torch_op(name, scale_in_place)


def test_a_wrong_number_of_gradients(scale, name, torch):
    scale.backward(lambda grad: (grad, grad))
    op = cl.frameworks.torch_op(name, scale)
    with pytest.raises(TypeError, match=r"must return 1 gradients, .* \(got 2\)"):
        op(torch.ones(3, requires_grad=True), 2.0).sum().backward()


@pytest.mark.slow
def test_no_gradient_is_lost_in_a_compiled_region(scale, name, torch):
    """The graph is broken there, and the function refuses it, as outside one."""
    op = cl.frameworks.torch_op(name, scale)
    for call in (op, scale):
        region = torch.compile(lambda x, call=call: call(x * 2, 2.0), backend="aot_eager")
        with pytest.raises(TypeError, match="requires grad"):
            region(torch.ones(3, requires_grad=True))
        with torch.no_grad():
            assert region(torch.ones(3, requires_grad=True)).sum() == 12
