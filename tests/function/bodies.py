"""Functions that several files of tests call, of the kernels in ``conftest.py``."""

import culaunch as cl


def make_scale(kernels):
    @cl.function
    def scale(x, factor: float):
        """y = x * factor."""
        cl.check(x.is_contiguous(), "x must be contiguous")
        y = cl.empty_like(x)
        n = x.size
        kernels[f"scale<{x.dtype}>"][cl.ceildiv(n, 256), 256](y, x, factor, n)
        return y

    return scale


def make_total(kernels):
    """Sum in two kernels, with scratch memory between them."""

    @cl.function
    def total(x):
        blocks = min(cl.ceildiv(x.size, 256), 256)
        partial = cl.empty((blocks,), "float32", like=x)
        result = cl.zeros((1,), "float32", like=x)
        kernels["partial_sums"][blocks, 256](partial, x, x.size)
        kernels["partial_sums"][1, 256](result, partial, blocks)
        return result

    return total
