"""A first call, which traces, keeps no array alive: not even until Python collects garbage."""

from __future__ import annotations

import gc
import itertools
import weakref

import numpy as np
import pytest

import culaunch as cl
from culaunch import elementwise as ew

SOURCE = (
    'extern "C" __global__ void copy(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x]; }'
)
_numbers = itertools.count()


def copy_function():
    kernel = cl.load(cl.compile(SOURCE))["copy"]

    @cl.function
    def copied(x, y):
        z = cl.empty_like(x)
        kernel[1, 8](z, x)
        kernel[1, 8](z, y)
        return z

    copied.backward(cl.function(lambda grad, x, y: (copied(grad, y), copied(grad, x))))
    return copied


def operator(function, **options):
    return cl.frameworks.torch_op(f"released::op{next(_numbers)}", function, **options)


def with_gradients(call):
    def run(x, y):
        x.requires_grad_()
        call(x, y).sum().backward()
        return x.grad

    return run


def scaled(x, y):
    return x * ew.rsqrt(ew.mean(x * x, axis=-1, keepdims=True) + 1) * y


CALLS = {
    "function": copy_function,
    "operator": lambda: operator(copy_function()),
    "dispatcher": lambda: operator(copy_function()).overload,
    "gradients": lambda: with_gradients(operator(copy_function())),
    "fused": lambda: ew.fuse(scaled),
    "gradients of fused": lambda: with_gradients(operator(ew.fuse(scaled), backward="auto")),
}


@pytest.mark.needs("torch", "nvrtc")
@pytest.mark.parametrize("name", CALLS)
def test_arrays_die_with_their_last_reference(name, emulated):
    torch = pytest.importorskip("torch")
    call = CALLS[name]()
    gc.collect()
    gc.disable()
    try:
        arrays = [torch.from_numpy(np.ones(8, np.float32)) for _ in range(2)]
        alive = [weakref.ref(one) for one in arrays]
        result = call(*arrays)
        alive.append(weakref.ref(result))
        del arrays, result
        assert [one() for one in alive] == [None] * 3
    finally:
        gc.enable()


@pytest.mark.needs("jax")
@pytest.mark.parametrize("kind", ["call", "gradient", "traced"])
def test_an_operator_of_jax_keeps_no_array(kind, emulated):
    """It keeps a plan for each kind of call, as long as it lives."""
    jax = pytest.importorskip("jax")
    op = cl.frameworks.jax_op(ew.fuse(scaled).as_function(backward="auto"))
    call = {
        "call": op,
        "gradient": jax.grad(lambda x, y: op(x, y).sum()),
        "traced": jax.jit(op),
    }[kind]
    arrays = [jax.numpy.full(8, value, jax.numpy.float32) for value in (1, 2)]
    alive = [weakref.ref(one) for one in arrays]
    call(*arrays).block_until_ready()
    del arrays
    gc.collect()
    assert [one() for one in alive] == [None] * 2
