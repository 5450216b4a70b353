"""Compile a Triton kernel for several devices, save it, and launch it from the file.

# needs triton
# needs torch
"""

import torch
import triton
import triton.language as tl

import culaunch as cl
from culaunch.triton import KernelSet, compile


@triton.jit
def scale(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


# No GPU is needed for this.
kernels = compile(
    scale,
    ["*fp32:16, *fp32:16, fp32, i32", "*fp16:16, *fp16:16, fp32, i32"],
    arch=["sm_80", "sm_90a", "compute_80"],
    configs=[{"BLOCK": 256}, {"BLOCK": 1024, "num_warps": 8}],
    keep_ptx=True,  # for the emulator
)
kernels.save("scale.culib")

# This does not need Triton either.
kernels = KernelSet.load("scale.culib")
device = "cpu" if cl.driver.driver_name() == "emulator" else "cuda"
for dtype in (torch.float32, torch.float16):
    x = torch.arange(1000, device=device).to(dtype)
    out = torch.empty_like(x)
    grid = lambda meta: (-(-meta["n"] // meta["BLOCK"]),)
    kernels[grid](x, out, 0.5, 1000, BLOCK=256)
    assert torch.equal(out, x * 0.5)
    print(f"{dtype}: out[999] = {out[999]}")

try:
    kernels[(1,)](x.double(), out, 0.5, 1000)
except cl.KernelNotFoundError as error:
    print(str(error).splitlines()[0])
