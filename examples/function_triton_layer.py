"""A layer of a fused function and a Triton kernel as one function: no Python after the first call.

# needs triton
# needs torch
"""

import torch
import triton
import triton.language as tl

import culaunch as cl
from culaunch import elementwise as ew
from culaunch.triton import native


@native
@triton.jit
def layer_norm(out, x, weight, bias, size, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0) * size
    at = tl.arange(0, BLOCK)
    mask = at < size
    value = tl.load(x + row + at, mask=mask, other=0.0)
    mean = tl.sum(value) / size
    centered = tl.where(mask, value - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centered * centered) / size + eps)
    result = centered * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row + at, result, mask=mask)


@ew.fuse
def add_gelu(x, residual):
    x = x + residual
    return 0.5 * x * (1 + ew.erf(x * 0.7071067811865476))


@cl.function
def layer(
    x: cl.Array("float32", "rows size"),
    residual: cl.Array("float32"),
    weight: cl.Array("float32", "size"),
    bias: cl.Array("float32", "size"),
    eps: float = 1e-5,
):
    """layer_norm(gelu(x + residual)) * weight + bias."""
    hidden = add_gelu(x, residual)  # residual may be one row: it is broadcast
    rows, size = hidden.shape
    cl.check(hidden.is_contiguous() & weight.is_contiguous(), "rows must be contiguous")
    out = cl.empty_like(hidden)
    layer_norm[(rows,)](out, hidden, weight, bias, size, eps, BLOCK=cl.next_power_of_2(size))
    return out


device = "cpu" if cl.driver.driver_name() == "emulator" else "cuda"
for rows, size in ((4, 32), (3, 20), (1, 1), (0, 32), (4, 32)):
    x, weight, bias = (
        torch.randn(shape, device=device) for shape in ((rows, size), (size,), (size,))
    )
    for residual in (torch.randn(rows, size, device=device), torch.randn(size, device=device)):
        expected = torch.nn.functional.gelu(x + residual)
        expected = torch.nn.functional.layer_norm(expected, (size,), weight, bias)
        result = layer(x, residual, weight, bias)
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
print(layer)
