"""Arrays of the driver in use, and comparisons with them."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from culaunch._base.checks import checked_number
from culaunch._base.driver_choice import strict_choice
from culaunch._base.optional import optional
from culaunch._base.values import spell
from culaunch._launch import DeviceArray, driver_name, to_device

# Relative and absolute, by the name of the computed type: the values of torch.testing.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
_ALIGNMENT = 256  # bytes: cuMemAlloc's


def to_driver(array: Any) -> Any:
    """Copy an array to the memory of the driver in use.

    Parameters
    ----------
    array : array_like or torch.Tensor
        An array on the CPU.

    Returns
    -------
    numpy.ndarray, culaunch.DeviceArray or torch.Tensor
        On the emulator, a new NumPy array. On a GPU or a strict emulator, a
        :class:`culaunch.DeviceArray`. A torch tensor stays a torch tensor. The address of the first
        element is a multiple of 256 bytes.

    Raises
    ------
    TypeError
        If the array is a torch tensor and the emulator is strict: torch cannot allocate the
        emulator's memory.

    Examples
    --------
    >>> from culaunch import testing
    >>> a = testing.to_driver(np.zeros(256, np.float32))
    >>> kernel[1, 256](a, testing.to_driver(np.ones(256, np.float32)), 2.0, 256)
    >>> testing.from_driver(a)[:3].tolist()
    [2.0, 2.0, 2.0]
    """
    is_emulated = driver_name() == "emulator"
    on_host = is_emulated and not strict_choice()
    if _is_torch(array):
        if is_emulated and not on_host:
            raise TypeError(
                "array must not be a tensor, because torch has no tensors in the memory of a "
                f"strict emulator: pass tensor.numpy() (got {spell(array)})"
            )
        return _aligned_tensor(array.detach()) if on_host else array.detach().cuda()
    if on_host:
        return _aligned_array(_numpy("to_driver").array(array))
    return to_device(array)


def from_driver(array: Any) -> Any:
    """Copy an array of :func:`culaunch.testing.to_driver` back to the CPU.

    The copy waits for the work in the default stream.

    Parameters
    ----------
    array : array
        An array on the driver in use, such as a result of :func:`culaunch.testing.to_driver`.

    Returns
    -------
    numpy.ndarray or torch.Tensor
        A torch tensor stays a torch tensor.

    Examples
    --------
    >>> from culaunch import testing
    >>> testing.from_driver(testing.to_driver([1, 2, 3])).tolist()
    [1, 2, 3]
    """
    if isinstance(array, DeviceArray):
        return array.numpy()
    if _is_torch(array):
        return array.detach().cpu().clone()
    return _numpy("from_driver").array(array)


def assert_allclose(
    actual: Any, desired: Any, *, rtol: float | None = None, atol: float | None = None
) -> None:
    """Fail unless two arrays are equal; floats may differ within a tolerance.

    Parameters
    ----------
    actual : array_like, culaunch.DeviceArray or torch.Tensor
        The computed array; its type decides the tolerance.
    desired : array_like, culaunch.DeviceArray or torch.Tensor
        The expected array, with the same shape or one that broadcasts to it.
    rtol, atol : float, optional
        Relative and absolute tolerance. The defaults are 1e-3 and 1e-5 for float16, 1.6e-2 and
        1e-5 for bfloat16, 1.3e-6 and 1e-5 for float32, and 1e-7 and 1e-7 for float64.

    Raises
    ------
    AssertionError
        If the arrays differ, or their shapes do not broadcast. The message has the largest
        differences.
    TypeError
        If the type has no default tolerance and you give none, or a tolerance is not a number. Also
        if an argument is not an array of numbers.
    MissingDependencyError
        If NumPy is not installed, or ml_dtypes for bfloat16.

    Examples
    --------
    >>> from culaunch import testing
    >>> kernel[1, 256](y, x, 2.0, 256)
    >>> testing.assert_allclose(y, np.full(256, 2.0))
    """
    np = _numpy("assert_allclose")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance is not None:
            checked_number(name, tolerance)
    got, wanted = _to_numpy(actual), _to_numpy(desired)
    try:
        wanted = np.broadcast_to(wanted, got.shape)
    except ValueError:
        raise AssertionError(
            f"the shapes differ: actual has {got.shape}, desired has {wanted.shape}"
        ) from None
    exact = got.dtype.kind in "biu"
    if exact or got.dtype.name in _TOLERANCES:
        default = (0.0, 0.0) if exact else _TOLERANCES[got.dtype.name]
    elif rtol is None and atol is None:
        raise TypeError(f"{got.dtype} has no default tolerance: give rtol= or atol=")
    else:
        default = (0.0, 0.0)
    if rtol is not None or atol is not None:
        default = (rtol or 0.0, atol or 0.0)
    if default == (0.0, 0.0):
        np.testing.assert_array_equal(got, wanted)
        return
    # Types such as bfloat16 cannot compute with tolerances this small.
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        got.astype(wide),
        wanted.astype(wide),
        rtol=default[0],
        atol=default[1],
        err_msg=f"tolerance of {got.dtype.name}",
    )


def _aligned_array(copy: Any) -> Any:
    """Move an array to where a GPU's memory would be: wide loads must not depend on luck."""
    import numpy as np

    if copy.dtype.hasobject or copy.nbytes == 0:
        return copy
    room = _aligned_bytes(copy.nbytes)
    aligned: Any = np.ndarray(copy.shape, copy.dtype, room, 0, copy.strides)
    aligned[...] = copy
    return aligned


def _aligned_bytes(size: int) -> Any:
    """Return memory that does not show the bytes around it: a kernel may not reach them."""
    room = bytearray(size + _ALIGNMENT)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(room)) % _ALIGNMENT
    return (ctypes.c_ubyte * size).from_buffer(room, start)


def _aligned_tensor(tensor: Any) -> Any:
    torch: Any = sys.modules["torch"]  # it is loaded: it made the tensor

    copy = tensor.clone()
    if copy.layout != torch.strided or copy.is_quantized or copy.numel() == 0:
        return copy
    size = copy.untyped_storage().nbytes() // copy.element_size() * copy.element_size()
    elements = torch.frombuffer(_aligned_bytes(size), dtype=torch.uint8).view(copy.dtype)
    return elements.as_strided(copy.shape, copy.stride(), elements.storage_offset()).copy_(copy)


def _is_torch(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "torch"


def _to_numpy(array: Any) -> Any:
    host = from_driver(array)
    if _is_torch(host):
        if str(host.dtype) == "torch.bfloat16":
            ml_dtypes = optional("ml_dtypes", "a bfloat16 tensor in assert_allclose", "ml_dtypes")
            return host.float().numpy().astype(ml_dtypes.bfloat16)
        return host.numpy()
    values = _numpy("assert_allclose").asarray(host)
    if values.dtype.kind in "OSU":
        raise TypeError(f"actual and desired must be arrays of numbers (got {spell(array)})")
    return values


def _numpy(purpose: str) -> Any:
    return optional("numpy", f"testing.{purpose}", "numpy")
