"""A kernel of host-side tensor descriptors."""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def move(a, b, factor):
    block: tl.constexpr = a.block_shape
    m = tl.program_id(0) * block[0]
    n = tl.program_id(1) * block[1]
    b.store([m, n], a.load([m, n]) * factor)


def set_blocks(nargs):
    """Set the blocks of descriptors, as Triton's tutorials do."""
    if not isinstance(nargs["a"], TensorDescriptor):
        return
    rows, columns = nargs["ROWS"], nargs["COLUMNS"]
    nargs["a"].block_shape = [rows, columns]
    if nargs.get("HALVES", False):
        columns //= 2
    nargs["b"].block_shape = [min(rows, 64), columns]


@triton.jit
def move_blocks(a, b, factor, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    place = [tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS]
    b.store(place, a.load(place) * factor)


def tuned(hook=set_blocks, sizes=((8, 16), (16, 16), (16, 32))):
    """Return a kernel under an autotuner, with a configuration for each size of blocks."""
    configs = [
        triton.Config({"ROWS": rows, "COLUMNS": columns}, pre_hook=hook) for rows, columns in sizes
    ]
    return triton.autotune(configs, key=["factor"])(move_blocks)
