"""Launch every Triton kernel of a program natively, without touching a kernel.

# needs triton
# needs torch
"""

import torch
import triton
import triton.language as tl

import culaunch as cl
import culaunch.triton


# A kernel as a library might have it. Nothing in it knows culaunch.
@triton.heuristics({"HAS_BIAS": lambda args: args["bias"] is not None})
@triton.jit
def scale(x, bias, out, n, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = 2 * tl.load(x + i, mask=i < n)
    if HAS_BIAS:
        value += tl.load(bias + i, mask=i < n)
    tl.store(out + i, value, mask=i < n)


def twice(x, bias=None):
    out = torch.empty_like(x)
    n = x.numel()
    scale[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, bias, out, n, BLOCK=256)
    return out


culaunch.triton.install()

# The emulated device's memory is the CPU's.
x = torch.arange(1000.0, device="cpu" if cl.driver.driver_name() == "emulator" else "cuda")
for _ in range(3):
    assert torch.equal(twice(x), 2 * x)
    assert torch.equal(twice(x, x), 3 * x)

print(culaunch.triton.report())
