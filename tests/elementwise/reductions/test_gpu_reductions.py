"""Reductions on a GPU: torch's arrays, every regime, large sizes, half precision."""

from __future__ import annotations

import functools

import pytest

import culaunch as cl
from culaunch import elementwise as ew

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch")]


@ew.fuse
def softmax(x):
    e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
    return e / ew.sum(e, axis=-1, keepdims=True)


@ew.fuse
def layer_norm(x, weight, bias, eps=1e-5):
    apart = x - ew.mean(x, axis=-1, keepdims=True)
    scale = ew.rsqrt(ew.mean(apart * apart, axis=-1, keepdims=True) + eps)
    return apart * scale * weight + bias


@ew.fuse
def norm(x, weight, bias):
    return layer_norm(x, weight, bias, 1e-5)


@functools.cache
def norm_operator():
    return cl.frameworks.torch_op("tests_reductions::norm", norm, backward="auto")


def totals(axis):
    return ew.fuse(lambda x: (ew.sum(x, axis=axis), ew.argmax(x, axis=axis)))


SHAPES = [(7, 3), (1000, 128), (33, 1000), (5, 4099), (64, 8192), (1000, 65536), (2, 1 << 20),
          (1 << 16, 40), (1, 1 << 24), (3, 12345), (50, 3, 640), (300, 20000), (300, 40001),
          (200, 200000)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_of_every_length(shape, dtype):
    import torch

    x = torch.randn(shape, device="cuda").to(getattr(torch, dtype))
    half = dtype in ("float16", "bfloat16")
    tolerance = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    wide = x.double()
    torch.testing.assert_close(
        softmax(x).double(), torch.softmax(wide, -1), rtol=tolerance, atol=tolerance
    )
    weight, bias = (torch.randn(shape[-1], device="cuda").to(x.dtype) for _ in range(2))
    wanted = torch.nn.functional.layer_norm(wide, shape[-1:], weight.double(), bias.double())
    torch.testing.assert_close(
        layer_norm(x, weight, bias).double(), wanted, rtol=10 * tolerance, atol=10 * tolerance
    )
    for axis in (0, -1, None):
        got = totals(axis)(x)
        total = wide.sum() if axis is None else wide.sum(axis)
        scale = wide.abs().sum() if axis is None else wide.abs().sum(axis)
        assert bool(((got[0].double() - total).abs() <= scale * tolerance).all())
        most = wide.argmax() if axis is None else wide.argmax(axis)
        if half:  # several are equal: the first of them
            found = wide.flatten()[got[1]] if axis is None else wide.gather(
                axis, got[1].unsqueeze(axis)
            ).squeeze(axis)  # fmt: skip
            greatest = wide.max() if axis is None else wide.amax(axis)
            assert bool((found == greatest).all())
        else:
            assert bool((got[1] == most).all())


def test_more_elements_than_32_bits_count():
    import torch

    if torch.cuda.mem_get_info()[0] < 6 << 30:
        pytest.skip("needs 6 GiB of GPU memory")
    x = torch.ones((1 << 32) + 5, dtype=torch.int8, device="cuda")
    x[-1] = 3
    total, where = ew.fuse(lambda x: (ew.sum(x), ew.argmax(x)))(x)
    assert int(total) == (1 << 32) + 7
    assert int(where) == (1 << 32) + 4


def test_the_same_bits_every_time():
    import torch

    x = torch.randn(1 << 24, device="cuda")
    total = ew.fuse(lambda x: ew.sum(x))
    assert len({float(total(x)) for _ in range(20)}) == 1


def test_compiled_regions_and_graphs():
    import torch

    x = torch.randn(64, 256, device="cuda")
    compiled = torch.compile(lambda x: softmax(x * 2) + 1, fullgraph=True)
    torch.testing.assert_close(compiled(x), torch.softmax(x * 2, -1) + 1)
    graph = torch.cuda.CUDAGraph()
    out = torch.empty_like(x)
    softmax(x, out=out)
    with torch.cuda.graph(graph):
        softmax(x, out=out)
    x.normal_()
    graph.replay()
    torch.testing.assert_close(out, torch.softmax(x, -1))


def test_operators_have_gradients_from_the_trace():
    import torch

    softmax_op = cl.frameworks.torch_op("tests_reductions::softmax", softmax, backward="auto")
    norm_op = norm_operator()
    for shape in ((64, 128), (3, 5000), (300, 40)):
        x = torch.randn(shape, device="cuda", requires_grad=True)
        weight, bias = (torch.randn(shape[-1], device="cuda", requires_grad=True) for _ in range(2))
        grad = torch.randn_like(x)
        for ours, theirs, args in (
            (softmax_op, lambda x: torch.softmax(x, -1), (x,)),
            (
                norm_op,
                lambda x, w, b: torch.nn.functional.layer_norm(x, shape[-1:], w, b),  # noqa: B023
                (x, weight, bias),
            ),
        ):
            right = torch.autograd.grad(theirs(*args), args, grad)
            for call in (ours, torch.compile(ours, fullgraph=True)):
                found = torch.autograd.grad(call(*args), args, grad)
                for one, other in zip(found, right, strict=True):
                    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)
        torch.library.opcheck(softmax_op.overload, (x,))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(1 << 17, 128), (1 << 15, 1024), (3000, 8192), (40000, 300)])
def test_gradients_of_weights_over_many_rows(shape, dtype):
    import torch

    norm_op = norm_operator()
    dtype = getattr(torch, dtype)
    x, grad = (torch.randn(shape, device="cuda").to(dtype) for _ in range(2))
    weight, bias = (torch.randn(shape[-1], device="cuda").to(dtype) for _ in range(2))
    args = [one.requires_grad_() for one in (x, weight, bias)]
    wide = [one.detach().double().requires_grad_() for one in args]
    right = torch.nn.functional.layer_norm(wide[0], shape[-1:], *wide[1:])
    wanted = torch.autograd.grad(right, wide, grad.double())
    for _ in range(3):
        found = torch.autograd.grad(norm_op(*args), args, grad)
        for one, other in zip(found, wanted, strict=True):
            scale = float(other.abs().max())
            tolerance = 1e-2 if dtype is torch.bfloat16 else 1e-5
            assert float((one.double() - other).abs().max()) <= scale * tolerance


def test_transformations_use_saved_values():
    import torch

    norm_op = norm_operator()
    x, weight, bias = torch.randn(64, 256, device="cuda"), *torch.randn(2, 256, device="cuda")

    def loss(function):
        return lambda x, weight, bias: function(x, weight, bias).square().sum()

    wanted = torch.func.grad(
        loss(lambda x, w, b: torch.nn.functional.layer_norm(x, (256,), w, b)), argnums=(0, 1, 2)
    )(x, weight, bias)
    found = torch.func.grad(loss(norm_op), argnums=(0, 1, 2))(x, weight, bias)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)
    each = torch.func.vmap(torch.func.grad(loss(norm_op)), in_dims=(0, None, None))
    torch.testing.assert_close(each(x[:, None], weight, bias)[:, 0], wanted[0],
                               rtol=1e-4, atol=1e-3)  # fmt: skip


@pytest.mark.needs("jax")
def test_gradients_of_jax_use_saved_values():
    import jax
    import numpy as np
    import torch

    op = cl.frameworks.jax_op(norm.as_function(backward="auto"))
    given = [torch.randn(shape).requires_grad_() for shape in ((64, 256), (256,), (256,))]
    result = torch.nn.functional.layer_norm(given[0], (256,), *given[1:])
    wanted = torch.autograd.grad(result.square().sum(), given)
    gradients = jax.jit(jax.grad(lambda *args: (op(*args) ** 2).sum(), argnums=(0, 1, 2)))
    found = gradients(*(jax.numpy.asarray(one.detach().numpy()) for one in given))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
