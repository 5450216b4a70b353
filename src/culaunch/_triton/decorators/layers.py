"""A Triton kernel: its decorators, from the outermost inward, and the JIT function below them."""

from __future__ import annotations

from typing import Any, NamedTuple

from culaunch._triton.reads.purity import Unknown
from culaunch._triton.upstream.target import triton_module


class Kinds(NamedTuple):
    """Triton's classes for a kernel and its decorators."""

    function: Any
    autotuner: Any
    heuristics: Any


def triton_kinds() -> Kinds:
    """Return Triton's classes."""
    decorators = triton_module("runtime.autotuner")
    return Kinds(
        triton_module("runtime.jit").JITFunction, decorators.Autotuner, decorators.Heuristics
    )


def layers_of(kernel: Any) -> list[Any]:
    """Return a kernel's decorators and its JIT function; empty for any other object."""
    known = triton_kinds()
    layers = []
    while isinstance(kernel, known):
        layers.append(kernel)
        if isinstance(kernel, known.function):
            return layers
        kernel = kernel.fn
    return []


def take_apart(kernel: Any) -> tuple[list[Any], Any]:
    """Return the decorators of a kernel and its JIT function, whose ``run`` is Triton's.

    Raises
    ------
    Unknown
        If other code runs one of them.
    TypeError
        If it is not a kernel.
    """
    known = triton_kinds()
    layers = []
    while not isinstance(kernel, known.function):
        if isinstance(kernel, known.heuristics):
            if own_run(kernel, known.heuristics) is not None:
                raise Unknown(f"{type(kernel).__qualname__} has a run() of its own")
        elif not isinstance(kernel, known.autotuner):
            raise TypeError(f"not a Triton kernel: {type(kernel).__qualname__}")
        if "run" in vars(kernel):
            raise Unknown(f"other code replaced run() of its {type(kernel).__qualname__}")
        layers.append(kernel)
        kernel = kernel.fn
        # native() may have been applied below a decorator.
        if not isinstance(kernel, known.function):
            kernel = getattr(kernel, "_kernel", kernel)
    if own_run(kernel, known.function) is not None or "run" in vars(kernel):
        raise Unknown("it has a run() of its own")
    return layers, kernel


def own_run(layer: Any, base: type) -> Any:
    """Return the ``run`` that a subclass of Triton's class defines; None if it defines none."""
    for kind in type(layer).__mro__:
        if kind is base:
            return None
        if "run" in vars(kind):
            return vars(kind)["run"]
    return None
