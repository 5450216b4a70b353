"""The contents of images, as :func:`culaunch.inspect` returns them."""

from culaunch._image.info import ImageInfo, Inspection, KernelInfo, ParameterInfo, VariableInfo

__all__ = [
    "ImageInfo",
    "Inspection",
    "KernelInfo",
    "ParameterInfo",
    "VariableInfo",
]
