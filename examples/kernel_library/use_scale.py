"""One library, three frameworks. Usage: python use_scale.py build/libscale.so

On a GPU every framework that is installed is asked; on the emulated driver
(CULAUNCH_DRIVER=emulator) NumPy and PyTorch's CPU tensors are.
"""

import importlib.util
import sys

import numpy as np
import tvm_ffi

import culaunch as cl

on_gpu = cl.driver.driver_name() == "cuda"
library = tvm_ffi.load_module(sys.argv[1])

if not on_gpu:
    # NumPy has no allocator that a library could use: give it the output.
    x = np.arange(1000, dtype=np.float32)
    y = np.empty_like(x)
    library.scale_into(y, x, 2.5)
    assert np.array_equal(y, x * 2.5)
    print("NumPy: 999 * 2.5 =", y[-1])

if importlib.util.find_spec("torch"):
    import torch

    device = "cuda" if on_gpu else "cpu"
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.arange(1000, device=device).to(dtype)
        y = library.scale(x, 2.5)  # a torch.Tensor, from PyTorch's allocator, on its stream
        assert torch.equal(y, (x.float() * 2.5).to(dtype))
        print(f"PyTorch, {dtype}: {x[-1].item():g} * 2.5 = {y[-1].item():g}")
    try:
        library.scale(x.reshape(10, 100).T, 2.5)
    except ValueError as error:
        print("an error:", error)

if on_gpu and importlib.util.find_spec("cupy"):
    import cupy

    x = cupy.arange(1000, dtype=cupy.float32)
    y = cupy.empty_like(x)
    library.scale_into(y, x, 2.5)
    assert (y == x * 2.5).all()
    print("CuPy: 999 * 2.5 =", y[-1])
