"""Tensor maps: arguments of the bulk tensor copies (TMA) of sm_90 and newer."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from itertools import islice
from typing import Any

from culaunch._base.checks import checked_choice
from culaunch._base.cuda import TensorMapType
from culaunch._base.values import fits, spell
from culaunch._errors import DriverError
from culaunch._launch.arrays.array import ArrayInfo, array_info
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.formats.dlpack import TypeCode

_MOST_DIMS = 5

# By DLPack's code and bits. Copies ignore the sign of elements, and bytes have no type.
_TYPES: dict[tuple[int, int], TensorMapType] = {
    (TypeCode.UINT, 8): TensorMapType.UINT8,
    (TypeCode.INT, 8): TensorMapType.UINT8,
    (TypeCode.BOOL, 8): TensorMapType.UINT8,
    (TypeCode.FLOAT8_E4M3FN, 8): TensorMapType.UINT8,
    (TypeCode.FLOAT8_E5M2, 8): TensorMapType.UINT8,
    (TypeCode.UINT, 16): TensorMapType.UINT16,
    (TypeCode.INT, 16): TensorMapType.UINT16,
    (TypeCode.UINT, 32): TensorMapType.UINT32,
    (TypeCode.INT, 32): TensorMapType.INT32,
    (TypeCode.UINT, 64): TensorMapType.UINT64,
    (TypeCode.INT, 64): TensorMapType.INT64,
    (TypeCode.FLOAT, 16): TensorMapType.FLOAT16,
    (TypeCode.FLOAT, 32): TensorMapType.FLOAT32,
    (TypeCode.FLOAT, 64): TensorMapType.FLOAT64,
    (TypeCode.BFLOAT, 16): TensorMapType.BFLOAT16,
}
_INTERLEAVE = {"none": 0, "16B": 1, "32B": 2}
_SWIZZLE = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
_PROMOTION = {"none": 0, "64B": 1, "128B": 2, "256B": 3}
_FILL = {"zero": 0, "nan": 1}


class TensorMap(ctypes.Structure):
    """A ``CUtensorMap``: passed by value to a ``const __grid_constant__ CUtensorMap`` parameter.

    It holds the address of its array, which must stay alive: ``array`` keeps
    it.

    Examples
    --------
    >>> a = cl.zeros((64, 64), "float16")
    >>> tensor_map = cl.arguments.TensorMap.tiled(a, (16, 64))  # doctest: +SKIP
    >>> kernel[1, 128](tensor_map)  # doctest: +SKIP
    """

    _fields_ = (("opaque", ctypes.c_uint64 * 16),)

    array: object

    def __init__(self, *fields: Any) -> None:
        if fields and not isinstance(fields[0], ctypes.Array):
            raise TypeError(
                "make a TensorMap with TensorMap.tiled(array, box), not from fields (got "
                f"{spell(fields[0])})"
            )
        super().__init__(*fields)

    @classmethod
    def tiled(
        cls,
        array: Any,
        box: tuple[int, ...],
        *,
        element_strides: tuple[int, ...] | None = None,
        interleave: str = "none",
        swizzle: str = "none",
        l2_promotion: str = "none",
        fill: str = "zero",
    ) -> TensorMap:
        """Describe an array, and the box that one copy moves.

        Parameters
        ----------
        array : array
            On a device, of 1 to 5 dimensions, the last one contiguous; the address a multiple of
            16 bytes, and so every other stride.
        box : tuple[int, ...]
            The box in elements, in the order of the array's dimensions (the driver's own order
            is the reverse); each from 1 to 256.
        element_strides : tuple[int, ...], optional
            Steps between elements in each dimension; 1 by default.
        interleave : {"none", "16B", "32B"}
        swizzle : {"none", "32B", "64B", "128B"}
        l2_promotion : {"none", "64B", "128B", "256B"}
        fill : {"zero", "nan"}
            The value of elements outside the array.

        Returns
        -------
        TensorMap
            The descriptor, which is passed to a kernel by value. It keeps the array alive.

        Raises
        ------
        ValueError, TypeError, OverflowError
            If the array or the box cannot be described.
        DriverError
            If the driver refuses the combination (driver API, ``cuTensorMapEncodeTiled``, has
            the rules), or the device has no tensor maps.
        """
        recorded = getattr(type(array), "_tensor_map", None)
        if recorded is not None:  # a stand-in, in the body of a function
            return recorded(  # type: ignore[no-any-return]
                array,
                box,
                element_strides,
                _numbers(array.dtype, interleave, swizzle, l2_promotion, fill),
                element_strides=element_strides,
                interleave=interleave,
                swizzle=swizzle,
                l2_promotion=l2_promotion,
                fill=fill,
            )
        info = array_info(array)
        rank = len(info.shape)
        box = _sizes("box", box)
        given = (1,) * rank if element_strides is None else element_strides
        steps = _sizes("element_strides", given)
        _check(info, box, steps)
        # In bytes, without the innermost stride, which is always 1. The driver lists dimensions
        # from the innermost outward.
        strides = tuple(stride * info.bits // 8 for stride in info.strides[:-1])
        result = cls()
        driver = current_driver()
        # The driver encodes for the current device.
        driver.push_device(info.device[1])
        try:
            code = driver.encode_tiled(
                result,
                _TYPES[info.code, info.bits],
                info.address,
                info.shape[::-1],
                strides[::-1],
                tuple(box)[::-1],
                tuple(steps)[::-1],
                checked_choice("interleave", interleave, _INTERLEAVE),
                checked_choice("swizzle", swizzle, _SWIZZLE),
                checked_choice("l2_promotion", l2_promotion, _PROMOTION),
                checked_choice("fill", fill, _FILL),
            )
        finally:
            driver.pop_device()
        if code != 0:
            said = driver.describe(code)
            raise DriverError(
                f"the driver refuses a tensor map of shape {info.shape}, strides of {strides} "
                f"bytes, box {tuple(box)}, swizzle {swizzle!r}: {said}",
                code,
                said.partition(" ")[0],
            )
        result.array = array
        return result


def _numbers(
    dtype: Any, interleave: str, swizzle: str, promotion: str, fill: str
) -> tuple[int, ...]:
    """Return the numbers of ``cuda.h`` for an element type and for the modes of the copy."""
    if (dtype.code, dtype.bits) not in _TYPES:
        raise ValueError(
            f"the element type of a tensor map must not be {dtype!r}: use one of numbers or bytes"
        )
    return (
        _TYPES[dtype.code, dtype.bits],
        checked_choice("interleave", interleave, _INTERLEAVE),
        checked_choice("swizzle", swizzle, _SWIZZLE),
        checked_choice("l2_promotion", promotion, _PROMOTION),
        checked_choice("fill", fill, _FILL),
    )


def _sizes(name: str, given: Any) -> tuple[int, ...]:
    if not isinstance(given, Iterable):
        raise TypeError(f"{name} must be a tuple of ints (got {spell(given)})")
    return tuple(fits(size, name, 64) for size in islice(given, _MOST_DIMS + 1))


def _check(info: ArrayInfo, box: tuple[int, ...], steps: tuple[int, ...]) -> None:
    rank = len(info.shape)
    if not 1 <= rank <= _MOST_DIMS:
        raise ValueError(f"array must have 1 to 5 dimensions (got {rank})")
    if (info.code, info.bits) not in _TYPES:
        raise ValueError(f"tensor maps have no elements of DLPack type {info.code}, {info.bits}")
    if len(box) != rank or len(steps) != rank:
        raise ValueError(
            f"box and element_strides must have one entry for each of the array's {rank} "
            f"dimensions (got {box}, {steps})"
        )
    if info.strides[-1] != 1:
        raise ValueError(
            f"the array's last dimension must be contiguous (got a stride of {info.strides[-1]} "
            "elements): transpose the description, or copy the array"
        )
