"""NumPy's dtypes and DLPack's element types."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from culaunch._base.optional import optional
from culaunch._base.values import counted, fits, spell
from culaunch._launch.formats.dlpack import TypeCode

if TYPE_CHECKING:
    import numpy as np

_MOST_DIMS = 64  # NumPy's limit
_MOST_LANES = 65_535  # DLPack's: the bytes of a structure
# By NumPy's kinds: the code, and the sizes in bytes that CUDA supports. NumPy's longest float is
# not supported.
_CODES = {
    "i": (TypeCode.INT, (1, 2, 4, 8)),
    "u": (TypeCode.UINT, (1, 2, 4, 8)),
    "f": (TypeCode.FLOAT, (2, 4, 8)),
    "c": (TypeCode.COMPLEX, (8, 16)),
    "b": (TypeCode.BOOL, (1,)),
}


def checked_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of elements that kernels compute with: numbers, or structures.

    Raises
    ------
    TypeError
        If NumPy makes no dtype of it, or CUDA does not support the dtype.
    ValueError
        If its bytes are in the other order.
    """
    kind = as_dtype(dtype)
    if kind.names is not None:
        if kind.hasobject or not 0 < kind.itemsize <= _MOST_LANES:
            raise TypeError(
                f"a structured dtype must have no Python objects and 1 to {_MOST_LANES} bytes "
                f"(got {kind} of {counted(kind.itemsize, 'byte')})"
            )
    elif _code(kind) is None:
        hint = ": CUDA has floats of at most 8 bytes" if kind.kind in "fc" else ""
        raise TypeError(
            "dtype must be a bool, an integer, a float, a complex number or a structure (got "
            f"{kind}){hint}"
        )
    if not kind.isnative:
        raise ValueError(
            "dtype must have the byte order of this machine, because kernels read no other (got "
            f"{kind.str!r}): convert the array, as with "
            'array.astype(array.dtype.newbyteorder("="))'
        )
    return kind


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return NumPy's dtype for a dtype-like object; otherwise raise with a short message."""
    np = optional("numpy", "a DeviceArray's dtype", "numpy")
    try:
        return np.dtype(dtype)  # type: ignore[no-any-return]
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"dtype must be a valid argument of numpy.dtype (got {spell(dtype)})") from error


def packed(dtype: np.dtype[Any]) -> tuple[int, int, int]:
    """Return DLPack's type code, bits and lanes of a checked dtype. Structures are bytes."""
    if dtype.names is not None:
        return TypeCode.UINT, 8, dtype.itemsize
    code = _code(dtype)
    assert code is not None
    return code, 8 * dtype.itemsize, 1


def unpacked(code: int, bits: int, lanes: int = 1) -> np.dtype[Any]:
    """Return the dtype for DLPack's numbers; raise ValueError if there is none."""
    numpy = optional("numpy", "a DeviceArray's dtype", "numpy")
    kind = next((letter for letter, (number, _) in _CODES.items() if number == code), None)
    dtype: np.dtype[Any]
    # NumPy lacks bfloat16. Most packages with it install ml_dtypes.
    if lanes == 1 and (code, bits) == (TypeCode.BFLOAT, 16):
        dtype = numpy.dtype(optional("ml_dtypes", "a bfloat16 array", "ml_dtypes").bfloat16)
        return dtype
    if lanes != 1 or kind is None or bits not in {8 * size for size in _CODES[kind][1]}:
        raise ValueError(
            f"culaunch has no arrays of DLPack type ({code}, {bits} bits, {lanes} lanes): pass "
            "the output to a function that accepts it, or pass another framework's arrays"
        )
    dtype = numpy.dtype("?" if kind == "b" else f"{kind}{bits // 8}")
    return dtype


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of ints, which may be negative."""
    if hasattr(type(shape), "__index__"):
        shape = (shape,)
    if not isinstance(shape, Iterable):
        raise TypeError(f"shape must be an int or a tuple of ints (got {spell(shape)})")
    # A shape may come from an infinite iterator.
    sizes = tuple(islice(shape, _MOST_DIMS + 1))
    if len(sizes) > _MOST_DIMS:
        raise ValueError(f"shape must have at most {_MOST_DIMS} dimensions (got more)")
    return tuple(fits(size, "shape", 64) for size in sizes)


def filled_in(shape: Any, nbytes: int, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return the shape of a number of bytes; one -1 is computed from the other dimensions.

    Raise ValueError if the shape has another number of bytes.
    """
    sizes = (-1,) if shape is None else checked_shape(shape)
    known = math.prod(size for size in sizes if size != -1) * dtype.itemsize
    if sizes.count(-1) == 1 and known > 0 and nbytes % known == 0:
        sizes = tuple(nbytes // known if size == -1 else size for size in sizes)
    if min(sizes, default=0) < 0 or math.prod(sizes) * dtype.itemsize != nbytes:
        raise ValueError(
            f"shape must give {counted(nbytes, 'byte')} for {dtype}, the size of the memory (got "
            f"{sizes if shape is None else shape})"
        )
    return sizes


def _code(dtype: np.dtype[Any]) -> int | None:
    if dtype.name == "bfloat16":
        return TypeCode.BFLOAT
    code, sizes = _CODES.get(dtype.kind, (None, ()))
    return code if dtype.itemsize in sizes else None
