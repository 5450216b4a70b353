"""NumPy arrays over host memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from culaunch._base.optional import optional
from culaunch._launch.formats.numpy_dtypes import unpacked

if TYPE_CHECKING:
    import numpy as np

    from culaunch._core import Driver


def over_host(
    address: int, shape: tuple[int, ...], dtype: np.dtype[Any], keeper: object
) -> np.ndarray[Any, Any]:
    """Return an array in C order over memory that ``keeper`` keeps alive."""
    np = optional("numpy", "memory of the host", "numpy")
    view = _View(address, math.prod(shape) * dtype.itemsize, keeper)
    return np.asarray(view).view(dtype).reshape(shape)  # type: ignore[no-any-return]


def host_array(driver: Driver, array: Any) -> np.ndarray[Any, Any]:
    """Return host memory as a NumPy array, without a copy if the memory is not empty.

    Raises
    ------
    TypeError, ValueError
        If NumPy cannot make an array of it.
    """
    from culaunch._core import array_info

    np = optional("numpy", "memory of the host", "numpy")
    if isinstance(array, np.ndarray) or not hasattr(type(array), "__dlpack_device__"):
        return np.asarray(array)  # type: ignore[no-any-return]
    # NumPy itself refuses torch's bfloat16, and tensors that require gradients.
    address, shape, strides, code, bits, _ = array_info(driver, array)
    dtype = unpacked(code, bits)
    # An array without elements may have any address.
    if 0 in shape:
        return np.empty(shape, dtype)  # type: ignore[no-any-return]
    # From the first to the last element in address order, because DLPack strides may skip some.
    extent = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    flat = over_host(address, (extent,), dtype, array)
    steps = tuple(step * dtype.itemsize for step in strides)
    return np.lib.stride_tricks.as_strided(flat, shape, steps)  # type: ignore[no-any-return]


def bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    """Return the bytes of a contiguous array."""
    # ml_dtypes' types do not export a buffer, but bytes always do.
    return array.reshape(-1).view("u1").data


class _View:
    """Memory over which NumPy makes an array of bytes."""

    def __init__(self, address: int, nbytes: int, keeper: object) -> None:
        self.keeper = keeper
        self.__array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }
