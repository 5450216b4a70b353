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
