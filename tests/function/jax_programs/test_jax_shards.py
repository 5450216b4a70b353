"""Functions inside ``jax.shard_map``: the types that JAX gives arrays there, and gradients."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.needs("jax")

PROGRAM = """
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P
import culaunch as cl

SOURCE = '''
extern "C" __global__ void product(float* y, const float* x, const float* w, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = w[i] * x[i];
}
extern "C" __global__ void pick(float* y, const float* x, const int* at, int n) {
  int i = threadIdx.x;
  if (i < n) y[i] = x[at[i]];
}
'''
kernels = cl.load(cl.compile(SOURCE))


@cl.function
def product(x: cl.Array("float32", "n"), w: cl.Array("float32", "n")):
    y = cl.empty_like(x)
    kernels["product"][1, 64](y, x, w, x.size)
    return y


@product.backward
@cl.function
def product_back(grad: cl.Array("float32"), x: cl.Array("float32"), w: cl.Array("float32")):
    return product(grad, w), product(grad, x)


@cl.function
def pick(x: cl.Array("float32", "n"), at: cl.Array("int32", "n")):
    y = cl.empty_like(x)
    kernels["pick"][1, 64](y, x, at, x.size)
    return y


pick.backward(lambda grad: (grad * 1.0, None))  # right for a permutation that is its own inverse

mesh = jax.sharding.Mesh(jax.devices(), ("d",))
w, x = jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.arange(8.0)


def sharded(body, in_specs, out_specs, **options):
    return jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


def theirs(x, w):
    return (x.reshape(2, 4) * w).reshape(-1)


wanted = jax.grad(lambda w, x: (theirs(x, w) ** 2).sum(), (0, 1))(w, x)
for options in ({}, {"check_vma": False}):
    # One is the same on all devices, and the other is not.
    mixed = sharded(product.jax, (P("d"), P()), P("d"), **options)
    assert jax.jit(mixed)(x, w).tolist() == theirs(x, w).tolist()
    both = jax.jit(jax.grad(lambda w, x: (mixed(x, w) ** 2).sum(), (0, 1)))(w, x)
    summed = lambda w, x: jax.lax.psum((product.jax(x, w) ** 2).sum(), "d")
    inside = sharded(summed, (P(), P("d")), P(), **options)
    for found in (both, jax.jit(jax.grad(inside, (0, 1)))(w, x)):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other)
    # The same everywhere, and so is what comes of it.
    same = sharded(product.jax, (P(), P()), P(), **options)
    assert jax.jit(same)(w, w).tolist() == (w * w).tolist()
    # An argument without a gradient, and one of None.
    at = jnp.array([1, 0, 3, 2], "int32")
    picked = sharded(pick.jax, (P("d"), P()), P("d"), **options)
    assert jax.jit(picked)(x, at).tolist() == [1, 0, 3, 2, 5, 4, 7, 6]
    assert jax.jit(jax.grad(lambda x: picked(x, at).sum()))(x).tolist() == [1] * 8
    # Rows, one after the other.
    rows = sharded(jax.vmap(product.jax), (P(None, "d"), P(None, None)), P(None, "d"), **options)
    found = jax.jit(rows)(jnp.stack([x, x]), jnp.stack([w, 2 * w]))
    assert found.tolist() == [theirs(x, w).tolist(), theirs(x, 2 * w).tolist()]

# What differs between devices is not taken for the same: the first device's part would come out.
try:
    sharded(product.jax, (P("d"), P("d")), P())(x, x)
except ValueError as error:
    assert "replicat" in str(error), error
else:
    raise AssertionError("parts were taken for the whole")
print("done")
"""


@pytest.mark.slow
def test_types_and_gradients_on_two_devices():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **flags, "CULAUNCH_DRIVER": "emulator"},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
