"""Outputs that a native call does not allocate itself: other orders, other frameworks."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from culaunch._base.optional import optional
from culaunch._launch.driver import current_driver
from culaunch._launch.memory import empty

if TYPE_CHECKING:
    from culaunch._launch.device_array import DeviceArray


def allocate_like(
    like: Any, shape: tuple[int, ...], order: tuple[int, ...], dtype: str, ordinal: int
) -> Any:
    """Allocate an array as the framework of ``like`` does, on its device and current stream.

    Parameters
    ----------
    like : array
    shape : tuple[int, ...]
    order : tuple[int, ...]
        Its dimensions from the outermost in memory to the innermost.
    dtype : str
    ordinal : int
        Its device.
    """
    in_memory = tuple(shape[axis] for axis in order)
    back = tuple(order.index(axis) for axis in range(len(order)))
    root = next((t.__module__.partition(".")[0] for t in type(like).__mro__ if _is_known(t)), "")
    if root == "torch":
        torch = sys.modules["torch"]
        made = torch.empty(in_memory, dtype=getattr(torch, dtype), device=like.device)
        return made.permute(back)
    if root == "cupy":
        with like.device:
            made = sys.modules[root].empty(in_memory, _numpy_dtype(dtype))
        return made if back == tuple(range(len(back))) else made.transpose(back)
    if root == "numpy":
        return sys.modules[root].empty(in_memory, _numpy_dtype(dtype)).transpose(back)
    if root == "numba":
        cuda = importlib.import_module("numba.cuda")
        strides, step = [0] * len(shape), _numpy_dtype(dtype).itemsize
        for axis in reversed(order):
            strides[axis] = step
            step *= shape[axis]
        return cuda.device_array(shape, _numpy_dtype(dtype), strides=tuple(strides))
    return empty(shape, _numpy_dtype(dtype), device=ordinal)


def finish_allocation(like: Any, made: DeviceArray, stream: int) -> Any:
    """Hand an array over to a framework that allocates on streams of its own, when it is ready."""
    if not type(like).__module__.startswith("jax"):
        return made
    current_driver().stream_synchronize(made.device, stream)
    return sys.modules["jax"].dlpack.from_dlpack(made)


_ROOTS = ("torch", "numpy", "cupy", "numba")


def _is_known(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _ROOTS


def _numpy_dtype(name: str) -> Any:
    np = optional("numpy", "an output in memory of the host", "numpy")
    if name != "bfloat16":
        return np.dtype(name)
    return np.dtype(optional("ml_dtypes", "bfloat16 in NumPy arrays", "ml_dtypes").bfloat16)
