"""Fuse a chain of elementwise operations into one kernel, for NumPy, torch, CuPy or JAX arrays.

Without a GPU: CULAUNCH_DRIVER=emulator python examples/elementwise_gelu.py
"""

import numpy as np

import culaunch as cl
from culaunch import elementwise as ew


@ew.fuse
def gelu(x):
    return 0.5 * x * (1 + ew.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


host = np.linspace(-3, 3, 10_000, dtype=np.float32)
x = cl.to_device(host)

y = gelu(x)  # allocated as x is
gelu(x, out=y)  # or written where it is to be

exact = 0.5 * host * (1 + np.tanh(0.79788456 * (host + 0.044715 * host**3)))
error = np.abs(y.numpy() - exact).max()
assert error < 1e-6
print(f"{gelu.lower(x).name}: largest error {error:.1e}")
