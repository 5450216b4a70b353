"""What a function of a library declares: its parameters, their defaults and annotations."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culaunch._function.annotations import Wanted
    from culaunch._ship.entry import SavedEntry


class LoadedDeclaration:
    """The parameters of a function of a library, as those of a body.

    Attributes
    ----------
    name : str
    names : tuple[str, ...]
        The parameters'.
    parameters : tuple
        Of each its name, and how it is passed.
    defaults : dict[str, object]
    wanted : dict[int, Wanted]
        What the parameters with a checkable annotation take.
    """

    def __init__(self, entry: SavedEntry) -> None:
        self.name = entry.name
        self.parameters = entry.parameters
        self.names = tuple(name for name, _ in entry.parameters)
        self.defaults = entry.defaults
        self.wanted: dict[int, Wanted] = entry.wanted

    @property
    def annotations(self) -> dict[str, Any]:
        """The annotations, as far as a library holds them."""
        return {self.names[index]: _annotation(want) for index, want in self.wanted.items()}


def signature_of(declaration: LoadedDeclaration) -> inspect.Signature:
    """Return the signature that Python shows."""
    kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    )
    annotations = declaration.annotations
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                kinds[how],
                default=declaration.defaults.get(name, inspect.Parameter.empty),
                annotation=annotations.get(name, inspect.Parameter.empty),
            )
            for name, how in declaration.parameters
        ]
    )


def _annotation(want: Wanted) -> Any:
    """Return an annotation that says what a parameter takes."""
    found = [] if want.array is None else [want.array]
    found += want.plain  # type: ignore[arg-type]
    if len(found) == 1 and (not want.is_optional or want.array is not None):
        return found[0]
    return want.text()
