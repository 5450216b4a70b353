"""Doors to frameworks that are attributes of a function: they stand above, and come when asked."""

from __future__ import annotations

import importlib
from typing import Any


def jax_door(function: Any) -> Any:
    """Return a function as an operation of JAX."""
    # By name, and as late as this: `_jax` and `_torch` stand above this room, and import
    # frameworks.
    return importlib.import_module("culaunch._jax").jax_op(function)


def torch_door(function: Any, arguments: tuple[Any, ...], error: TypeError | None) -> Any:
    """Call a function as an operator of torch: a tensor has no memory, which is the error.

    So torch computes the shapes of what it traces. Where the tensor is no such one, the error is
    raised. Without an error, torch wants to see each operation: NotImplemented is returned where
    the function is no operator.
    """
    door = importlib.import_module("culaunch._torch.unregistered")
    return door.call_refused(function, arguments, error)
