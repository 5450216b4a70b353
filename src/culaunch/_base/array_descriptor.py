"""The driver's description of an array for textures and surfaces."""

from __future__ import annotations

import ctypes


class ArrayDescriptor(ctypes.Structure):
    """``CUDA_ARRAY3D_DESCRIPTOR``."""

    _fields_ = (
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
        ("format", ctypes.c_uint),
        ("channels", ctypes.c_uint),
        ("flags", ctypes.c_uint),
    )
