"""Doors to frameworks that are attributes of a function: they stand above, and come when asked."""

from __future__ import annotations

import importlib
import sys
from typing import Any


def jax_door(function: Any) -> Any:
    """Return a function as an operation of JAX."""
    # By name, and as late as this: `_jax` and `_torch` stand above this room, and import
    # frameworks.
    return importlib.import_module("culaunch._jax").jax_op(function)


def framework_door(
    function: Any, arguments: tuple[Any, ...], error: TypeError | None
) -> Any:  # fmt: skip
    """Call a function as its framework knows it, where an array has no memory, or raise the error.

    So a function can be called where JAX or torch traces. Without an error, torch wants to see each
    operation: NotImplemented is returned where the function is no operator.
    """
    if error is not None:
        if _is_traced_by_jax(arguments):
            return importlib.import_module("culaunch._jax").call_traced(function, arguments)
        if "torch" not in sys.modules:
            raise error
    door = importlib.import_module("culaunch._torch.unregistered")
    return door.call_refused(function, arguments, error)


def _is_traced_by_jax(arguments: tuple[Any, ...]) -> bool:
    core = getattr(sys.modules.get("jax"), "core", None)
    return core is not None and any(
        isinstance(one, core.Tracer)
        for value in arguments
        for one in (value if isinstance(value, (tuple, list)) else (value,))
    )
