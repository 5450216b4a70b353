"""Gradients of operators."""

import pytest

import culaunch as cl

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch")]


@pytest.mark.slow
def test_gradients_are_another_functions(product, name, torch):
    op = cl.torch_op(name, product)
    x, y = (torch.randn(5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(op, (x, y))
    torch.library.opcheck(op.overload, (x, y))
    op(x, y).sum().backward()  # of a gradient that is one number, expanded
    assert torch.equal(x.grad, y)
    assert torch.equal(y.grad, x)


@pytest.mark.slow
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

    op = cl.torch_op(name, both)
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(op, (x,))
    op(x)[1].sum().backward()  # the other gradient is zeros
    assert torch.equal(x.grad, 2 * x)


def test_the_backward_function_is_an_operator(product, name, torch):
    cl.torch_op(name, product)
    backward = getattr(torch.ops.culaunch_test, name.partition("::")[2] + "_backward").default
    assert str(backward._schema).endswith("(Tensor grad, Tensor x, Tensor y) -> (Tensor, Tensor)")
    torch.library.opcheck(backward, tuple(torch.randn(3, 4)[:3]))


def test_what_writes_its_arguments_has_no_gradient(scale_in_place, name):
    scale_in_place.backward(lambda grad: grad)
    with pytest.raises(TypeError, match="writes its argument x, and torch computes no gradients"):
        cl.torch_op(name, scale_in_place)


def test_a_wrong_number_of_gradients(scale, name, torch):
    scale.backward(lambda grad: (grad, grad))
    op = cl.torch_op(name, scale)
    with pytest.raises(TypeError, match="returned 2 gradients, and there are 1 array parameters"):
        op(torch.ones(3, requires_grad=True), 2.0).sum().backward()


@pytest.mark.slow
def test_no_gradient_is_lost_in_a_compiled_region(scale, name, torch):
    """The graph is broken there, and the function refuses it, as outside of one."""
    op = cl.torch_op(name, scale)
    for call in (op, scale):
        region = torch.compile(lambda x, call=call: call(x * 2, 2.0), backend="aot_eager")
        with pytest.raises(TypeError, match="requires grad"):
            region(torch.ones(3, requires_grad=True))
        with torch.no_grad():
            assert region(torch.ones(3, requires_grad=True)).sum() == 12
