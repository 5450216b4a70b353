"""A user's code with Triton kernels. Type checkers refuse only the marked lines."""

from typing import Any

from culaunch import triton as cl_triton


def launches(jitted: Any, x: Any) -> None:
    kernel: cl_triton.NativeKernel = cl_triton.native(jitted)
    kernel[(4,)](x, 1000, BLOCK=128, num_warps=4)
    kernel[lambda meta: (meta["BLOCK"], 1)](x, 1000)
    kernel[4](x)  # refused
    kernel["a"](x)  # refused
    cl_triton.natve(jitted)  # refused
