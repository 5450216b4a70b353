"""What is in an image: cubin, fatbin, PTX. It needs no GPU and no toolkit.

Launching needs no parser: the names are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._image.image import Image
    from culaunch._image.info import ImageInfo, Inspection, KernelInfo, ParamInfo
    from culaunch._image.inspection import embedded_ptx, inspect, ptx_kernel_names, ptx_param_types
    from culaunch._image.names import demangle, mangled_param_types
    from culaunch._image.variables import image_variables

_HOME = {
    "Image": "image",
    "ImageInfo": "info",
    "Inspection": "info",
    "KernelInfo": "info",
    "ParamInfo": "info",
    "demangle": "names",
    "embedded_ptx": "inspection",
    "image_variables": "variables",
    "inspect": "inspection",
    "mangled_param_types": "names",
    "ptx_kernel_names": "inspection",
    "ptx_param_types": "inspection",
}

__all__ = [
    "Image",
    "ImageInfo",
    "Inspection",
    "KernelInfo",
    "ParamInfo",
    "demangle",
    "embedded_ptx",
    "image_variables",
    "inspect",
    "mangled_param_types",
    "ptx_kernel_names",
    "ptx_param_types",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"culaunch._image.{home}"), name)
    globals()[name] = value
    return value
