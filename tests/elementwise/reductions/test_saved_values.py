"""Row values that a forward pass saves for gradients."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from kernel_texts import gradient_of, kernels

import culaunch as cl
from culaunch import elementwise as ew

pytestmark = pytest.mark.needs("torch")
_numbers = itertools.count()


def values(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def layer_norm(x, weight, bias):
    apart = x - ew.mean(x, axis=-1, keepdims=True)
    scale = ew.rsqrt(ew.mean(apart * apart, axis=-1, keepdims=True) + 1e-5)
    return apart * scale * weight + bias


def cross_entropy(x, is_target):
    return ew.logsumexp(x, axis=-1) - ew.sum(ew.where(is_target, x, 0), axis=-1)


def rows_or_double(x):
    if x.dtype == ew.float64:
        return x * 2.0
    return x - x * ew.mean(x, axis=-1, keepdims=True)


def of_torch(name):
    import torch

    nn = torch.nn.functional
    return {
        "layer_norm": lambda x, w, b: nn.layer_norm(x, x.shape[-1:], w, b, 1e-5),
        "rms_norm": lambda x, w: nn.rms_norm(x, x.shape[-1:], w, 1e-5),
        "batch_norm": lambda x: (x - x.mean(0)) / x.std(0, correction=0),
        "total": lambda x: x * x.square().sum(),
        "cross_entropy": lambda x, t: x.logsumexp(-1) - torch.where(t, x, 0).sum(-1),
        "nested": lambda x, w, b: nn.layer_norm(x, x.shape[-1:], w, b, 1e-5).softmax(-1),
    }[name]


CASES = {
    "layer_norm": (layer_norm, 2),
    "rms_norm": (
        lambda x, weight: x * ew.rsqrt(ew.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight, 1
    ),
    "batch_norm": (lambda x: (x - ew.mean(x, axis=0)) / ew.std(x, axis=0), 3),
    "total": (lambda x: x * ew.sum(x * x), 1),
    "cross_entropy": (cross_entropy, 2),
    "nested": (lambda x, weight, bias: ew.fuse(softmax)(layer_norm(x, weight, bias)), 4),
}  # fmt: skip


def softmax(x):
    e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
    return e / ew.sum(e, axis=-1, keepdims=True)


def operator(function):
    name = f"tests_saved::op{next(_numbers)}"
    return cl.frameworks.torch_op(name, ew.fuse(function), backward="auto")


@functools.cache
def operator_of(name):
    """Return the operator of a case: its registration runs the body on every path."""
    return operator(CASES[name][0])


def arguments(name, shape):
    import torch

    x = torch.from_numpy(values(*shape)).requires_grad_()
    if name == "cross_entropy":
        return [x, torch.arange(shape[1]) == torch.arange(shape[0])[:, None]]
    extra = {"layer_norm": 2, "nested": 2, "rms_norm": 1}.get(name, 0)
    return [x, *(torch.from_numpy(values(shape[1])).requires_grad_() for _ in range(extra))]


def called(function, *args):
    """Call it, and list the operators that torch ran."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.namespace == "tests_saved":
                names.append(func.__name__.split(".")[0].partition("_")[2])
            return func(*args, **(kwargs or {}))

    names = []
    with Names():
        result = function(*args)
    return result, names


# Rows in registers, rows that are read twice, one row, one column.
@pytest.mark.parametrize("shape", [(6, 40), (3, 5000), (1, 33), (700, 2)])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_torchs(name, shape):
    import torch

    op, args = operator_of(name), arguments(name, shape)
    leaves = [one for one in args if one.requires_grad]
    doubles = [one.detach().double().requires_grad_(one.requires_grad) for one in args]
    doubles = [a if b.requires_grad else b for a, b in zip(doubles, args, strict=True)]
    wanted = of_torch(name)(*doubles)
    result, names = called(op, *args)
    assert names == ["forward"]
    torch.testing.assert_close(result, wanted.float(), rtol=1e-4, atol=1e-4, equal_nan=True)
    grad = torch.from_numpy(values(*result.shape))
    found, names = called(lambda: torch.autograd.grad(result, leaves, grad))
    assert names == ["backward"]
    right = torch.autograd.grad(
        wanted, [one for one in doubles if one.requires_grad], grad.double()
    )
    for one, other in zip(found, right, strict=True):
        torch.testing.assert_close(one, other.float(), rtol=2e-3, atol=2e-3, equal_nan=True)
    assert len(op.gradients.forward.outputs) == 1 + CASES[name][1]


def test_only_a_call_with_gradients_saves():
    import torch

    op, (x, weight, bias) = operator(layer_norm), arguments("layer_norm", (6, 40))
    assert called(op, x.detach(), weight.detach(), bias.detach())[1] == [""]
    with torch.no_grad():
        assert called(op, x, weight, bias)[1] == [""]
    assert called(op, x.detach(), weight, bias.detach())[1] == ["forward"]


def test_the_gradient_reduces_once_and_reads_saved_values_first():
    x, weight, row = values(6, 40), values(40), values(6)
    (text, *_) = kernels(gradient_of(layer_norm, saved=2), x, row, row, x, weight, weight)
    assert text.source.count("struct Partial") == 1
    body = text.source.split("__global__")[1]
    assert body.index("x1_value") < body.index("Combine0")
    assert body.index("x2_value") < body.index("Combine0")
    assert body.count("across_lanes") == 1


def test_half_precision_saves_what_was_computed():
    x = (values(4, 64) * 30 + 300).astype(np.float16)
    host = ew.fuse(lambda x: x - ew.mean(x, axis=-1, keepdims=True) * x).as_function(
        backward="auto"
    )
    _, saved = host._gradient.forward(x)
    assert saved.dtype == np.float32
    # Not rounded to half precision.
    np.testing.assert_allclose(saved, x.astype(np.float64).mean(-1), rtol=1e-6)


def test_a_type_with_fewer_values_to_save():
    """The number of values is the operator's; another type may have none."""
    import torch

    op = operator(rows_or_double)
    x = torch.from_numpy(values(6, 40)).double().requires_grad_()
    (found,) = torch.autograd.grad(op(x).sum(), x)
    assert torch.equal(found, torch.full_like(x, 2))
    y = x.detach().float().requires_grad_()
    (found,) = torch.autograd.grad(op(y).sum(), y)
    (wanted,) = torch.autograd.grad((x - x * x.mean(-1, keepdim=True)).sum(), x)
    torch.testing.assert_close(found, wanted.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_compiled_graphs_and_transformations():
    import torch

    op, (x, weight, bias) = operator(layer_norm), arguments("layer_norm", (6, 40))
    wanted = torch.autograd.grad(of_torch("layer_norm")(x, weight, bias).square().sum(), x)[0]
    torch.library.opcheck(op.overload, (x, weight, bias))

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def compiled(x, weight, bias):
        return op(x, weight, bias).square().sum()

    close = {"rtol": 1e-3, "atol": 1e-3}
    torch.testing.assert_close(
        torch.autograd.grad(compiled(x, weight, bias), x)[0], wanted, **close
    )

    def loss(x):
        return op(x, weight.detach(), bias.detach()).square().sum()

    torch.testing.assert_close(torch.func.grad(loss)(x.detach()), wanted, **close)
    each = torch.func.vmap(torch.func.grad(loss))(x.detach()[:, None])
    torch.testing.assert_close(each[:, 0], wanted, **close)


@pytest.mark.needs("jax")
def test_gradients_of_jax():
    jax = pytest.importorskip("jax")
    op = cl.frameworks.jax_op(ew.fuse(layer_norm).as_function(backward="auto"))
    x, weight, bias = map(jax.numpy.asarray, (values(6, 40), values(40), values(40) + 1))

    def loss(op):
        return jax.jit(jax.grad(lambda *args: (op(*args) ** 2).sum(), argnums=(0, 1, 2)))

    def reference(x, weight, bias):
        apart = x - x.mean(-1, keepdims=True)
        return apart / jax.numpy.sqrt((apart**2).mean(-1, keepdims=True) + 1e-5) * weight + bias

    wanted = loss(reference)(x, weight, bias)
    for one, other in zip(loss(op)(x, weight, bias), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_a_parameter_named_as_a_saved_value_is_refused():
    def f(saved_0):
        return saved_0 * ew.sum(saved_0 * saved_0)

    with pytest.raises(ValueError, match="rename the parameter saved_0"):
        ew.fuse(f).as_function(backward="auto")
