"""The declaration of a library's function: its parameters, their defaults and annotations."""

from __future__ import annotations

import functools
import inspect
import operator
from typing import TYPE_CHECKING, Any

from culaunch._function.declarations.annotations import Array
from culaunch._function.declarations.declaration import Declaration
from culaunch._launch.formats.dtype import DType

if TYPE_CHECKING:
    from culaunch._function.declarations.annotations import Wanted
    from culaunch._ship.manifest.entry import SavedEntry


class LoadedDeclaration(Declaration):
    """The parameters of a function of a library, in the form of a body's.

    Attributes
    ----------
    name : str
    names : tuple[str, ...]
        The parameters'.
    parameters : tuple
        The name of each, and how it is passed.
    defaults : dict[str, object]
    wanted : dict[int, Wanted]
        The annotations that can be checked.
    """

    def __init__(self, entry: SavedEntry) -> None:
        self.name = entry.name
        self.parameters = entry.parameters
        self.names = tuple(name for name, _ in entry.parameters)
        self.defaults = entry.defaults
        self.wanted: dict[int, Wanted] = entry.wanted
        self._kinds = [one.kind for one in entry.kinds]

    @property
    def annotations(self) -> dict[str, Any]:
        """The annotations. A parameter without one that is never an array gets its own type."""
        found = {}
        for index, name in enumerate(self.names):
            want = self.wanted.get(index)
            entries = [kind[index] for kind in self._kinds]
            annotation = _of_kinds(entries) if want is None else _annotation(want)
            if annotation is not None:
                found[name] = annotation
        return found


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
    """Return an annotation for the values that a parameter accepts."""
    types: list[Any] = [] if want.array is None else [want.array]
    types += want.plain
    if want.is_optional:
        types.append(None)
    if len(types) == 1:
        return types[0]
    if want.array is not None and not want.plain:
        return want.array  # it already says that it is optional
    if want.array is not None:
        return want.text()
    return functools.reduce(operator.or_, types)


def _of_kinds(entries: list[Any]) -> Any:
    """Return the one type that all kinds give a parameter; None for arrays."""
    types = {_type(entry) for entry in entries if entry is not None}
    if len(types) != 1:
        return None
    (found,) = types
    return found | None if found is not None and None in entries else found


def _type(entry: Any) -> Any:
    if type(entry) is bool:
        return bool
    if isinstance(entry, type):
        return entry
    if entry[0] == "list":
        return list[Array]
    if entry[0] == "value" and isinstance(entry[1], (str, DType)):
        return str if isinstance(entry[1], str) else DType
    return None
