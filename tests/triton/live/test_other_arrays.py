"""Arrays of other libraries than PyTorch: every element type is Triton's own."""

import numpy as np
import pytest

pytest.importorskip("torch")
triton = pytest.importorskip("triton")

TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
         "float32", "float64"]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_every_element_type(on_emulator, dtype):
    import installed_kernels

    from culaunch.triton import native

    x = np.arange(100).astype(dtype)
    out = np.zeros_like(x)
    native(installed_kernels.add)[(2,)](x, x, out, 100, BLOCK=64)
    assert (out == x + x).all()


def test_truth_values(on_emulator):
    import as_triton_kernels

    from culaunch.triton import native

    out = np.zeros(1, dtype=bool)
    native(triton.jit(as_triton_kernels.put.fn))[(1,)](out, True)
    assert out[0]
