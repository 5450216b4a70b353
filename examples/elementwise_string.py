"""The string form, in the convention of CuPy's ElementwiseKernel.

Without a GPU: CULAUNCH_DRIVER=emulator python examples/elementwise_string.py
"""

import numpy as np

import culaunch as cl
from culaunch import elementwise as ew

saxpy = ew.kernel("float32 a, T x, T y", "T z", "z = a * x + y", "saxpy")
gather = ew.kernel("raw T table, int32 at", "T y", "y = table[at]", "gather")

x = cl.to_device(np.arange(8, dtype=np.float64))
print(saxpy(2, x, x).numpy())
at = cl.to_device(np.array([7, 0, 3], np.int32))
print(gather(x, at).numpy())
