"""Operators, and functions that nobody registered, under the transformations of torch.func."""

import pytest

import culaunch as cl

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch")]


@pytest.fixture
def smooth(kernels, name):
    """A product whose gradient has a gradient: one of torch's, which calls the operator."""

    @cl.function
    def smooth(x, y):
        z = cl.empty_like(x)
        kernels[f"multiply<{x.dtype}>"][1, 64](z, x, y, x.size)
        return z

    @smooth.backward
    def smooth_backward(grad, x, y):
        return op(grad, y), op(grad, x)

    op = cl.frameworks.torch_op(name, smooth)
    return op


@pytest.fixture
def x(torch):
    return torch.arange(1.0, 4)


def test_gradients_of_every_order(smooth, x, torch):
    def cube(x):
        return smooth(x, smooth(x, x)).sum()

    func = torch.func
    assert torch.equal(func.grad(cube)(x), 3 * x**2)
    assert torch.equal(func.grad(lambda x: func.grad(cube)(x).sum())(x), 6 * x)
    assert torch.equal(func.jacrev(lambda x: smooth(x, x))(x), torch.diag(2 * x))
    assert torch.equal(func.vjp(lambda x: smooth(x, x), x)[1](x)[0], 2 * x**2)
    leaf = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(cube(leaf), leaf, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), leaf)
    assert torch.equal(second, 6 * x)


def test_a_gradient_without_a_gradient(product, name, x, torch):
    op = cl.frameworks.torch_op(name, product)
    for call in (op, product):

        def square(x, call=call):
            return call(x, x).sum()

        assert torch.equal(torch.func.grad(square)(x), 2 * x)
        with pytest.raises(
            TypeError, match="_backward has no gradient, so autograd would use zero"
        ):
            torch.func.jacrev(torch.func.grad(square))(x)
    leaf = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(op(leaf, leaf).sum(), leaf, create_graph=True)
    assert torch.equal(first, 2 * x)
    with pytest.raises(TypeError, match="_backward has no gradient, so autograd would use zero"):
        first.sum().backward()


def test_a_function_without_a_gradient_is_refused(scale, name, x, torch):
    op = cl.frameworks.torch_op(name, scale)
    for call in (op, scale):
        with pytest.raises(TypeError, match="has no gradient, so autograd would use zero"):
            torch.func.grad(lambda x, call=call: call(x, 2.0).sum())(x)
        # Values without a gradient flow are left unchanged.
        found = torch.func.grad(lambda y, call=call: (call(x, 2.0) * y).sum())(x)
        assert torch.equal(found, 2 * x)


@pytest.mark.slow
def test_there_is_no_forward_mode(smooth, scale, x, torch):
    import torch.autograd.forward_ad as forward

    for call in (lambda x: smooth(x, x), lambda x: scale(x, 2.0)):
        with pytest.raises(TypeError, match="has no forward-mode derivative"):
            torch.func.jvp(call, (x,), (x,))
    with forward.dual_level(), pytest.raises(TypeError, match="has no forward-mode derivative"):
        smooth(forward.make_dual(x, x), x)
    constant = torch.func.jvp(lambda y: smooth(x, x) * y, (x,), (x,))
    assert torch.equal(constant[1], x**3)


def test_a_batch_is_a_call_for_each_row(smooth, product, x, torch):
    rows = torch.arange(6.0).reshape(2, 3)
    for call in (smooth, product):
        assert torch.equal(torch.vmap(call, in_dims=(0, None))(rows, x), rows * x)
        assert torch.equal(torch.vmap(call)(rows, rows), rows * rows)
    columns = rows.t().contiguous()
    assert torch.equal(torch.vmap(smooth, in_dims=(1, None))(columns, x), rows * x)
    nested = torch.vmap(torch.vmap(smooth))(rows.reshape(1, 2, 3), rows.reshape(1, 2, 3))
    assert torch.equal(nested, (rows * rows).reshape(1, 2, 3))


def test_batches_and_gradients(smooth, torch):
    rows = torch.arange(6.0).reshape(2, 3)
    by_row = torch.vmap(torch.func.grad(lambda x: smooth(x, x).sum()))
    assert torch.equal(by_row(rows), 2 * rows)
    of_batch = torch.func.grad(lambda rows: torch.vmap(lambda x: smooth(x, x))(rows).sum())
    assert torch.equal(of_batch(rows), 2 * rows)


def test_batches_of_what_is_written(scale_in_place, name, x, torch):
    op = cl.frameworks.torch_op(name, scale_in_place)
    rows = torch.arange(6.0).reshape(2, 3)

    def region(row):
        op(row, 3.0)
        return row

    torch.vmap(region)(rows)
    assert torch.equal(rows, 3 * torch.arange(6.0).reshape(2, 3))


@pytest.mark.filterwarnings("ignore")  # of torch's own, about vmap's speed
def test_batches_that_have_no_rule(kernels, name, x, torch):
    @cl.function(mutates=["total"])
    def add(total, row):
        kernels["multiply<float>"][1, 64](total, total, row, row.size)

    op = cl.frameworks.torch_op(name, add)
    rows = torch.ones(2, 3)
    with pytest.raises(TypeError, match="writes total, which must be batched"):
        torch.vmap(op, in_dims=(None, 0))(x, rows)

    @cl.function
    def counted(row):
        return cl.empty_like(row), row.shape[0]

    numbers = cl.frameworks.torch_op(f"{name}b", counted)
    with pytest.raises(TypeError, match=r"returns numbers, but torch\.vmap accepts only tensors"):
        torch.vmap(numbers)(rows)


def test_functionalize(scale, x, torch):
    assert torch.equal(torch.func.functionalize(lambda x: scale(x + 1, 3.0))(x), 3 * (x + 1))
