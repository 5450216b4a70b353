"""The gradient function of a function, for the frameworks' entry points."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._function.declarations.declaration import Declaration

_GIVEN = re.compile(r"(grad|out)(_(\d+))?")


class Backward:
    """A function for gradients, and its inputs.

    Attributes
    ----------
    function : callable
    needs : tuple of (str, int or str)
        For each parameter: ``("grad", i)``, ``("out", i)``, or ``("argument", name)``.
    """

    def __init__(self, declaration: Declaration, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable (got {spell(function)})")
        self.function = function
        self.needs: tuple[tuple[str, int | str], ...] = tuple(
            _need(declaration, name) for name in inspect.signature(function).parameters
        )

    def __call__(
        self, gradients: tuple[Any, ...], outputs: tuple[Any, ...], arguments: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Compute the gradients of the array parameters, in order."""
        given = {"grad": gradients, "out": outputs}
        values = [
            arguments[which] if what == "argument" else given[what][which]  # type: ignore[index]
            for what, which in self.needs
        ]
        result = self.function(*values)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _need(declaration: Declaration, name: str) -> tuple[str, int | str]:
    if name in declaration.names:
        return "argument", name
    match = _GIVEN.fullmatch(name)
    if match is None:
        raise ValueError(
            "each parameter of the backward function must be grad, grad_0, ..., out, out_0, ..., "
            f"or a parameter of {declaration.name}: {', '.join(declaration.names)} (got {name!r})"
        )
    return match[1], int(match[3] or 0)
