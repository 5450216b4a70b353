"""Functions that reduce under the transformations of PyTorch and JAX: batches and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import culaunch as cl
from culaunch import elementwise as ew


@ew.fuse
def softmax(x):
    e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
    return e / ew.sum(e, axis=-1, keepdims=True)


@ew.fuse
def layer_norm(x, weight, bias, eps=1e-5):
    """Normalize rows."""
    apart = x - ew.mean(x, axis=-1, keepdims=True)
    scale = ew.rsqrt(ew.mean(apart * apart, axis=-1, keepdims=True) + eps)
    return apart * scale * weight + bias


@ew.fuse
def total(x):
    return ew.sum(x)


def values(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


@pytest.fixture
def operators():
    pytest.importorskip("torch")
    return {
        one.__name__: cl.frameworks.torch_op(f"tests_batches::{one.__name__}", one, backward="auto")
        for one in (softmax, layer_norm, total)
    }


def same(ours, theirs):
    import torch

    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.needs("torch")
def test_batches_of_an_operator_of_torch(operators):
    import torch

    x = torch.from_numpy(values(3, 4, 20))
    weight, bias = torch.from_numpy(values(20)), torch.from_numpy(values(20))
    vmap, op = torch.vmap, operators["softmax"]
    wanted = torch.softmax(x, -1)
    same(vmap(op)(x), wanted)
    same(vmap(op, in_dims=1, out_dims=1)(x), wanted)
    same(vmap(vmap(op))(x), wanted)
    same(vmap(operators["total"])(x), x.sum((1, 2)))
    normal = torch.nn.functional.layer_norm(x, (20,), weight, bias)
    same(vmap(operators["layer_norm"], in_dims=(0, None, None))(x, weight, bias), normal)


@pytest.mark.needs("torch")
def test_batches_of_gradients_of_torch(operators):
    import torch

    x, weight = torch.from_numpy(values(3, 20)), torch.from_numpy(values(20))
    for op in (operators["softmax"], softmax.as_function(backward="auto")):
        by_row = torch.vmap(torch.func.grad(lambda row, op=op: (op(row) * weight).sum()))
        of_all = torch.func.grad(lambda x, op=op: (torch.vmap(op)(x) * weight).sum())
        wanted = torch.func.grad(lambda x: (torch.softmax(x, -1) * weight).sum())(x)
        same(by_row(x), wanted)
        same(of_all(x), wanted)


@pytest.mark.needs("torch")
def test_an_unregistered_function_has_its_gradient_in_a_compiled_region():
    import torch

    x = torch.from_numpy(values(3, 20)).requires_grad_()
    host = softmax.as_function(backward="auto")
    region = torch.compile(lambda x: host(x * 2) + 1, fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(region(x).square().sum(), x)
    (wanted,) = torch.autograd.grad((torch.softmax(x * 2, -1) + 1).square().sum(), x)
    same(found, wanted)


@pytest.mark.needs("jax")
@pytest.mark.parametrize("way", ["sequential", "sequential_unrolled", "broadcast_all"])
def test_batches_of_jax(way):
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(values(3, 4, 20))
    op = cl.frameworks.jax_op(softmax.as_function(backward="auto"), vmap=way)
    np.testing.assert_allclose(jax.vmap(op)(x), jax.nn.softmax(x), rtol=1e-5, atol=1e-6)

    def loss(function):
        return lambda x: (jax.vmap(function)(x) ** 2).sum()

    ours, theirs = jax.grad(loss(op))(x), jax.grad(loss(jax.nn.softmax))(x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.needs("jax")
def test_one_call_for_a_batch_must_keep_its_dimension():
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(values(3, 20))
    host = total.as_function()
    with pytest.raises(ValueError, match=r"arrays of the shapes \(3,\) \(got \(\)\): count"):
        jax.vmap(cl.frameworks.jax_op(host, vmap="broadcast_all"))(x)
    found = jax.vmap(cl.frameworks.jax_op(host))(x)
    np.testing.assert_allclose(found, x.sum(1), rtol=1e-5)
