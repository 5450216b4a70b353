"""What is in an image: cubin, fatbin, PTX. Pure Python; needs no GPU and no toolkit."""

from __future__ import annotations

from culaunch._image.image import Image
from culaunch._image.info import ImageInfo, Inspection, KernelInfo, ParamInfo
from culaunch._image.inspection import embedded_ptx, inspect, ptx_param_types
from culaunch._image.itanium import demangle, mangled_param_types

__all__ = [
    "Image",
    "ImageInfo",
    "Inspection",
    "KernelInfo",
    "ParamInfo",
    "demangle",
    "embedded_ptx",
    "inspect",
    "mangled_param_types",
    "ptx_param_types",
]
