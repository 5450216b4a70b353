"""The same library under jax.jit. Usage: python use_scale_jax.py build/libscale.so

On the emulated driver (CULAUNCH_DRIVER=emulator) JAX runs on the CPU.
"""

import sys

import jax
import jax.numpy as jnp
import jax_tvm_ffi
import numpy as np
import tvm_ffi

import culaunch as cl

platform = "gpu" if cl.driver.driver_name() == "cuda" else "cpu"
library = tvm_ffi.load_module(sys.argv[1])
# XLA allocates the result: it comes first, as in scale_into(y, x, factor).
jax_tvm_ffi.register_ffi_target(
    "scale", library.scale_into, ["rets", "args", "attrs.factor"], platform=platform
)


@jax.jit
def scale(x):
    call = jax.ffi.ffi_call("scale", jax.ShapeDtypeStruct(x.shape, x.dtype))
    return call(x, factor=2.5)


x = jnp.arange(1000, dtype=jnp.float32)
assert np.array_equal(scale(x), np.asarray(x) * 2.5)
print("JAX: 999 * 2.5 =", scale(x)[-1])
