"""Doors to frameworks that are attributes of a function: they stand above, and come when asked."""

from __future__ import annotations

import importlib
from typing import Any


def jax_door(function: Any) -> Any:
    """Return a function as an operation of JAX."""
    return importlib.import_module("culaunch._jax").jax_op(function)
