"""The globals that a kernel of Triton was compiled with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culaunch._triton.reads import Guard


def global_guards(function: Any) -> list[Guard]:
    """Return what is in the places of the globals that a JIT function uses."""
    return [
        (namespace, name, name in namespace, namespace.get(name))
        for (name, _), (_, namespace) in function.used_global_vals.items()
    ]


def check_globals(function: Any) -> None:
    """Refuse a global that has changed, in the words of Triton.

    Raises
    ------
    RuntimeError
        If a global that the function uses is not what it was compiled with.
    """
    missing = object()
    for (name, _), (value, namespace) in function.used_global_vals.items():
        # A global that was deleted is no longer what it was: an object that is nobody's stands for
        # it.
        found = namespace.get(name, missing)
        if found != value:
            raise RuntimeError(
                f"Global variable {name} has changed since we compiled this kernel, from "
                f"{value} to {found}"
            )
