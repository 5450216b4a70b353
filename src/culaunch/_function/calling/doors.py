"""Entry points of frameworks that are attributes of a function. They are imported on demand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

from culaunch._base.rooms_above import open_room

if TYPE_CHECKING:
    from culaunch._function.tracing.kinds import Kind
    from culaunch._function.tracing.runs import Run


class Door(Protocol):
    """A framework that has a function as one of its operators."""

    def learn(self, run: Run, kind: Kind, /) -> None:
        """Check a traced path. Raise if the operator does not allow it."""

    def differentiate(self) -> None:
        """Record the backward function of the function."""


def jax_door(function: Any) -> Any:
    """Return a function as an operation of JAX."""
    return open_room("jax").jax_op(function)


def framework_door(
    function: Any, arguments: tuple[Any, ...], error: TypeError | None
) -> Any:  # fmt: skip
    """Call a function through its framework if an array has no memory, or raise the error.

    Functions can therefore be called while JAX or torch traces. If there is no error, a torch mode
    intercepts operations. NotImplemented is returned if the function is not an operator.
    """
    if error is not None:
        if _is_traced_by_jax(arguments):
            return open_room("jax").call_traced(function, arguments)
        if "torch" not in sys.modules:
            raise error
    return open_room("torch").call_refused(function, arguments, error)


def _is_traced_by_jax(arguments: tuple[Any, ...]) -> bool:
    core = getattr(sys.modules.get("jax"), "core", None)
    return core is not None and any(
        isinstance(one, core.Tracer)
        for value in arguments
        for one in (value if isinstance(value, (tuple, list)) else (value,))
    )
