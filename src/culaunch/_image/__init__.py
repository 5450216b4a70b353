"""Inspects images: cubin, fatbin, PTX. This needs no GPU and no toolkit.

Launching needs no parser: the names are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._image.image import Image
    from culaunch._image.info import ImageInfo, Inspection, KernelInfo, ParameterInfo, VariableInfo
    from culaunch._image.inspection import embedded_ptx, inspect, ptx_param_types
    from culaunch._image.names import demangle, mangled_param_types

_HOME = {
    "Image": "image",
    "ImageInfo": "info",
    "Inspection": "info",
    "KernelInfo": "info",
    "ParameterInfo": "info",
    "VariableInfo": "info",
    "demangle": "names",
    "embedded_ptx": "inspection",
    "inspect": "inspection",
    "mangled_param_types": "names",
    "ptx_param_types": "inspection",
}

__all__ = [
    "Image",
    "ImageInfo",
    "Inspection",
    "KernelInfo",
    "ParameterInfo",
    "VariableInfo",
    "demangle",
    "embedded_ptx",
    "inspect",
    "mangled_param_types",
    "ptx_param_types",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"culaunch._image.{home}"), name)
    # From now on the name is found without a call.
    globals()[name] = value
    return value
