"""Functions: the host side of kernels, written in Python, run natively."""

from culaunch._core import set_upcalls
from culaunch._function import upcalls
from culaunch._function.body.debugging import function_debugging
from culaunch._function.calling.abstract import AbstractArray
from culaunch._function.calling.decorator import function
from culaunch._function.calling.function import Function
from culaunch._function.declarations.annotations import Array, dtype_of
from culaunch._function.tracing.launches import launch_if
from culaunch._function.tracing.verbs import (
    ceildiv,
    check,
    empty,
    empty_like,
    next_power_of_2,
    zeros,
    zeros_like,
)
from culaunch._launch.formats.dtype import DType

set_upcalls(function=upcalls)

__all__ = [
    "AbstractArray",
    "Array",
    "DType",
    "Function",
    "ceildiv",
    "check",
    "dtype_of",
    "empty",
    "empty_like",
    "function",
    "function_debugging",
    "launch_if",
    "next_power_of_2",
    "zeros",
    "zeros_like",
]
