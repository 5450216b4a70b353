"""Outputs that native code does not allocate itself: other dimension orders, other frameworks."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from culaunch._base.optional import optional
from culaunch._launch.arrays.memory import empty
from culaunch._launch.devices.driver import current_driver

if TYPE_CHECKING:
    from culaunch._launch.arrays.device_array import DeviceArray


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
    # Allocate in C order with the dimensions in memory order, then permute them to the caller's
    # order. Every framework can do this.
    back = tuple(order.index(axis) for axis in range(len(order)))
    root = next((t.__module__.partition(".")[0] for t in type(like).__mro__ if _is_known(t)), "")
    # The framework is loaded, because one of its arrays is here, so nothing is imported.
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
        # numba.cuda is not in the package that the arrays' module names.
        cuda = importlib.import_module("numba.cuda")
        strides, step = [0] * len(shape), _numpy_dtype(dtype).itemsize
        for axis in reversed(order):
            strides[axis] = step
            step *= shape[axis]
        return cuda.device_array(shape, _numpy_dtype(dtype), strides=tuple(strides))
    return empty(shape, _numpy_dtype(dtype), device=ordinal)


def finish_allocation(like: Any, made: DeviceArray, stream: int) -> Any:
    """Hand a finished array over to a framework that allocates on its own streams."""
    # JAX has only its own streams, so its arrays must be ready.
    if not type(like).__module__.startswith("jax"):
        return made
    current_driver().stream_synchronize(made.device, stream)
    return sys.modules["jax"].dlpack.from_dlpack(made)


def view_of(
    owner: Any, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str
) -> Any:
    """Make an array of ``owner``'s framework over part of its memory, which stays alive with it.

    Parameters
    ----------
    owner : array
        An array of a framework without the DLPack exchange API.
    address : int
        Of the first element, inside its memory.
    shape, strides : tuple[int, ...]
        In elements.
    dtype : str
    """
    item = _numpy_dtype(dtype).itemsize
    steps = tuple(stride * item for stride in strides)
    root = next((t.__module__.partition(".")[0] for t in type(owner).__mro__ if _is_known(t)), "")
    if root == "cupy":
        cuda = sys.modules["cupy"].cuda
        # CuPy and NumPy keep the given owner of the memory alive.
        memory = cuda.UnownedMemory(address, 0, owner, owner.device.id)
        pointer = cuda.MemoryPointer(memory, 0)
        return sys.modules["cupy"].ndarray(shape, _numpy_dtype(dtype), pointer, steps)
    if root == "numpy":
        held = _Memory(owner, "__array_interface__", address, shape, steps, f"|V{item}")
        return sys.modules["numpy"].asarray(held).view(_numpy_dtype(dtype))
    if root == "numba":
        text = _numpy_dtype(dtype).str
        held = _Memory(owner, "__cuda_array_interface__", address, shape, steps, text)
        return importlib.import_module("numba.cuda").as_cuda_array(held)
    raise TypeError(
        f"a function must not return a view of a {type(owner).__name__}: return an array that it "
        "allocated, or the array itself"
    )


class _Memory:
    """A part of an array's memory, in the form of the array interfaces."""

    def __init__(
        self,
        owner: object,
        protocol: str,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        typestr: str,
    ) -> None:
        self.owner = owner
        entry = {
            "data": (address, False),
            "shape": shape,
            "strides": strides,
            "typestr": typestr,
            "version": 3,
        }
        setattr(self, protocol, entry)


_ROOTS = ("torch", "numpy", "cupy", "numba")


def _is_known(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _ROOTS


def _numpy_dtype(name: str) -> Any:
    np = optional("numpy", "an output in host memory", "numpy")
    if name != "bfloat16":
        return np.dtype(name)
    return np.dtype(optional("ml_dtypes", "bfloat16 in NumPy arrays", "ml_dtypes").bfloat16)
