"""A kernel whose parameters declare types that their values would not make."""

import triton
import triton.language as tl


@triton.jit
def typed(a: tl.int8, b: tl.uint16, c: tl.float16, d: tl.bfloat16, e: tl.float64, f: tl.int1):
    tl.device_print("", a + b + c + d + e + f)
