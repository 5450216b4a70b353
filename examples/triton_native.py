"""Launch a Triton kernel natively: one changed line.

# needs triton
# needs torch
"""

import torch
import triton
import triton.language as tl

import culaunch as cl
from culaunch.triton import native


@native
@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


# The emulated device's memory is the CPU's.
device = "cpu" if cl.driver.driver_name() == "emulator" else "cuda"
x = torch.randn(1000, device=device)
y = torch.randn(1000, device=device)
out = torch.empty_like(x)

add[(4,)](x, y, out, 1000, BLOCK=256)
assert torch.equal(out, x + y)

out.zero_()
add[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, out, n=1000, BLOCK=512)
assert torch.equal(out, x + y)
print(f"added {len(x)} numbers twice, on the driver {cl.driver.driver_name()}")
