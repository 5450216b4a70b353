"""Functions that are called with what JAX traces: as the operation that they are there."""

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
    # The door of this function for JAX is made once, with what it knows of earlier calls.
    operator = function.jax
    plan, call, arrays = operator.prepare(values)
    if plan.writes:
        raise TypeError(
            f"{plan.name} writes {', '.join(plan.written_names)}, and JAX traces the call, whose "
            f"arrays nothing writes: call {plan.name}.jax there, which returns the new arrays"
        )
    return operator.run(plan, call, arrays)
