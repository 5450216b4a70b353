"""The kernels of reductions and of their gradients, as a call would compile them."""

from __future__ import annotations

from typing import Any

from culaunch import elementwise as ew
from culaunch._elementwise.gradients.function import GradientFunction, Needs
from culaunch._elementwise.reductions.described import texts_of


def gradient_of(function: Any, *, results: int = 0, saved: int = 0) -> GradientFunction:
    """Return what computes the gradients of a function with one result, from what it takes."""
    return GradientFunction(ew.fuse(function), Needs(1, results, saved))


def kernels(function: Any, *arguments: Any) -> Any:
    """Return the kernels of a call, with their sources."""
    return texts_of(function, arguments, None)[0]
