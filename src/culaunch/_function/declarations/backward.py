"""The gradient function of a function, for the frameworks' entry points."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._core import Function as CoreFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from culaunch._function.declarations.declaration import Declaration

_GIVEN = re.compile(r"(grad|out|saved)(_(\d+))?")


class Backward:
    """A function for gradients, and its inputs.

    Attributes
    ----------
    function : callable
    forward : Function or None
        It returns the results, then the values that ``function`` takes as ``saved``.
    needs : tuple of (str, int or str)
        For each parameter: ``("grad", i)``, ``("out", i)``, ``("saved", i)``, or
        ``("argument", name)``.
    """

    def __init__(
        self, declaration: Declaration, function: Callable[..., Any], forward: Any = None
    ) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable (got {spell(function)})")
        self.function, self.forward = function, forward
        self.needs: tuple[tuple[str, int | str], ...] = tuple(
            _need(declaration, name) for name in inspect.signature(function).parameters
        )
        takes_saved = any(what == "saved" for what, _ in self.needs)
        if takes_saved and forward is None:
            raise ValueError(
                "forward must be given, because the backward function takes saved values (got "
                f"None): pass a function that returns the results of {declaration.name}, and then "
                "these values"
            )
        if forward is None:
            return
        if not isinstance(forward, CoreFunction):
            raise TypeError(f"forward must be a Function (got {spell(forward)})")
        own: Declaration = forward.declaration  # type: ignore[attr-defined]
        if own.names != declaration.names:
            raise ValueError(
                f"forward must have the parameters of {declaration.name}: "
                f"{', '.join(declaration.names)} (got {', '.join(own.names)})"
            )

    def inputs(
        self,
        gradients: Sequence[Any],
        outputs: Sequence[Any],
        saved: Sequence[Any],
        arguments: Mapping[str, Any],
    ) -> list[Any]:
        """Return the arguments of ``function``, from each kind of values and their numbers."""
        given: dict[str, Any] = {"grad": gradients, "out": outputs, "saved": saved}
        given["argument"] = arguments
        return [given[what][which] for what, which in self.needs]


def _need(declaration: Declaration, name: str) -> tuple[str, int | str]:
    if name in declaration.names:
        return "argument", name
    match = _GIVEN.fullmatch(name)
    if match is None:
        raise ValueError(
            "each parameter of the backward function must be grad, grad_0, ..., out, out_0, ..., "
            f"saved, saved_0, ..., or a parameter of {declaration.name}: "
            f"{', '.join(declaration.names)} (got {name!r})"
        )
    return match[1], int(match[3] or 0)
