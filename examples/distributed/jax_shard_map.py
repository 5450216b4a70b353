"""A function on all devices of JAX: shard_map gives each its part, and XLA calls it there.

Without GPUs JAX makes two devices of the CPU, and the kernels run on the emulated driver.
"""

# needs jax
import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import culaunch as cl

kernel = cl.load(
    cl.compile(
        """
__global__ void scale(float* y, const float* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}""",
        names=["scale"],
    )
)["scale"]


@cl.function
def scale(x: cl.Array("float32"), factor: float):
    """y = x * factor."""
    y = cl.empty_like(x)
    kernel[cl.ceildiv(x.size, 256), 256](y, x, factor, x.size)
    return y


# [shard_map]
mesh = Mesh(jax.devices(), ("part",))
x = jax.device_put(
    jnp.arange(1000 * len(jax.devices()), dtype=jnp.float32), NamedSharding(mesh, P("part"))
)


def part(x):
    y = scale.jax(x, 2.0)  # on this part's device
    return y, jax.lax.psum(y.sum(), "part")


program = jax.jit(jax.shard_map(part, mesh=mesh, in_specs=P("part"), out_specs=(P("part"), P())))
y, total = program(x)
# [end]
assert (y == 2 * x).all()
assert total == 2 * x.sum()
print(f"{len(jax.devices())} devices of JAX, {y.sharding.spec}")
