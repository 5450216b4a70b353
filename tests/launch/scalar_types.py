"""The types of scalars that tests pass, and what C++ calls them, by their sizes."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np

SIGNED = {1: "signed char", 2: "short", 4: "int", 8: "long long"}
UNSIGNED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "size_t"}
FLOATS = {2: "half", 4: "float", 8: "double"}
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
REALS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]
CTYPES = [
    ctypes.c_byte, ctypes.c_ubyte, ctypes.c_short, ctypes.c_ushort, ctypes.c_int, ctypes.c_uint,
    ctypes.c_long, ctypes.c_ulong, ctypes.c_longlong, ctypes.c_ulonglong, ctypes.c_size_t,
    ctypes.c_float, ctypes.c_double, ctypes.c_bool, ctypes.c_int64, ctypes.c_uint8,
]  # fmt: skip


def in_bytes(size: int) -> str:
    """Write a size as messages do."""
    return "1 byte" if size == 1 else f"{size} bytes"
