import triton
import triton.language as tl


@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(x + offsets, 2 * tl.load(x + offsets, inside), inside)
