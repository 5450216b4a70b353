"""The kernels of reductions and of their gradients, as a call would compile them."""

from __future__ import annotations

from typing import Any

from culaunch import elementwise as ew
from culaunch._elementwise.gradients.function import GradientFunction
from culaunch._elementwise.reductions.described import texts_of


def gradient_of(function: Any, inputs: int, **options: Any) -> GradientFunction:
    """Return what computes the gradients of a function of arrays."""
    return GradientFunction(ew.fuse(function), inputs, **options)


def kernels(function: Any, *arguments: Any) -> Any:
    """Return the kernels of a call, with their sources."""
    return texts_of(function, arguments, None)[0]
