"""Calls of functions with JAX's traced values: they become operations."""

from __future__ import annotations

from typing import Any


def call_traced(function: Any, values: tuple[Any, ...]) -> Any:
    """Call a function as ``function.jax`` does, with a value for each parameter.

    Raises
    ------
    TypeError, ValueError
        As ``function.jax``; and where the function writes an argument, which its caller would look
        for in vain: arrays of JAX do not change.
    """
    # The function's JAX operator is made once, and caches earlier calls.
    operator = function.jax
    plan, call, arrays = operator.prepare(values)
    if plan.writes:
        raise TypeError(
            f"{plan.name} writes {', '.join(plan.written_names)}, but JAX traces this call, and "
            f"traced arrays cannot be written: call {plan.name}.jax, which returns the new arrays"
        )
    return operator.run(plan, call, arrays)
