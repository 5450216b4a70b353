"""A kernel of Triton taken apart: its decorators, and what is below them."""

from __future__ import annotations

from typing import Any

from culaunch._triton.purity import Unknown
from culaunch._triton.target import triton_module


def take_apart(kernel: Any) -> tuple[list[Any], Any]:
    """Return the decorators of a kernel, outermost first, and its JIT function.

    Raises
    ------
    Unknown
        If somebody else runs one of them.
    TypeError
        If it is no kernel.
    """
    function_type = triton_module("runtime.jit").JITFunction
    autotuner = triton_module("runtime.autotuner")
    layers = []
    while not isinstance(kernel, function_type):
        if isinstance(kernel, autotuner.Heuristics):
            if own_run(kernel, autotuner.Heuristics) is not None:
                raise Unknown(f"{type(kernel).__qualname__} has a run() of its own")
        elif not isinstance(kernel, autotuner.Autotuner):
            raise TypeError(f"no kernel of Triton: {type(kernel).__qualname__}")
        if "run" in vars(kernel):
            raise Unknown(f"somebody set run of its {type(kernel).__qualname__}")
        layers.append(kernel)
        inner = kernel.fn
        # native() may have been put below a decorator.
        kernel = getattr(inner, "_kernel", inner) if not isinstance(inner, function_type) else inner
    if own_run(kernel, function_type) is not None or "run" in vars(kernel):
        raise Unknown("it has a run() of its own")
    return layers, kernel


def own_run(layer: Any, base: type) -> Any:
    """Return the ``run`` that a subclass of Triton's class defines; None where it defines none."""
    for kind in type(layer).__mro__:
        if kind is base:
            return None
        if "run" in vars(kind):
            return vars(kind)["run"]
    return None
