"""Functions that tests of several folders call, and what a call of one is compared with."""

import ctypes

import numpy as np

import culaunch as cl


class Params(ctypes.Structure):
    """The argument of the kernel ``structured`` of tests/function."""

    _fields_ = (
        ("n", ctypes.c_int),
        ("scale", ctypes.c_float),
        ("y", ctypes.c_void_p),
        ("x", ctypes.c_void_p),
        ("step", ctypes.c_longlong),
        ("on", ctypes.c_bool),
    )


def make_scale(kernels, *, least=0):
    """Make a function of ``scale<T>``; `least` is 1 if an array may have no elements."""

    @cl.function
    def scale(x, factor: float):
        """y = x * factor."""
        cl.check(x.is_contiguous(), "x must be contiguous")
        y = cl.empty_like(x)
        n = x.size
        threads = max(n, least) if least else n
        kernels[f"scale<{x.dtype}>"][cl.ceildiv(threads, 256), 256](y, x, factor, n)
        return y

    return scale


def make_total(kernels, *, new=cl.zeros):
    """Sum in two kernels, with scratch memory between them; `new` allocates the result."""

    @cl.function
    def total(x):
        blocks = min(cl.ceildiv(x.size, 256), 256)
        partial = cl.empty((blocks,), "float32", like=x)
        result = new((1,), "float32", like=x)
        kernels["partial_sums"][blocks, 256](partial, x, x.size)
        kernels["partial_sums"][1, 256](result, partial, blocks)
        return result

    return total


def both(function, *args, is_same=np.testing.assert_array_equal):
    """Call it natively, twice, and as plain Python; give the last result, which is the others'."""
    results = [function(*args), function(*args)]
    with cl.function_debugging():
        results.append(function(*args))
    for result in results[1:]:
        is_same(result, results[0])
    return results[-1]


def shape_only(shape, dtype):
    """Return an array without contents, for the method `abstract` of a function."""
    return cl.function(lambda: cl.empty(shape, dtype)).abstract()
