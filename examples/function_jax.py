"""A function in a program of JAX: jit, grad and vmap, from one declaration."""

# needs jax
# [function]
import jax
import jax.numpy as jnp

import culaunch as cl

image = cl.compile(
    """
__global__ void scale(float* y, const float* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}""",
    names=["scale"],
)
kernel = cl.load(image)["scale"]


@cl.function
def scale(x: cl.Array("float32"), factor: float):
    """y = x * factor."""
    y = cl.empty_like(x)
    kernel[cl.ceildiv(x.size, 256), 256](y, x, factor, x.size)
    return y


@scale.backward
def gradient(grad, factor):
    return scale.jax(grad, factor)


@jax.jit
def program(x):
    return scale.jax(x + 1, 3.0).sum()


# [end]
x = jnp.arange(100, dtype=jnp.float32)
rows = x.reshape(4, 25)
assert program(x) == 3 * 100 * 101 / 2
assert (jax.grad(program)(x) == 3).all()
assert (jax.vmap(lambda row: scale.jax(row, 2.0))(rows) == 2 * rows).all()
print("scaled by XLA's call")
