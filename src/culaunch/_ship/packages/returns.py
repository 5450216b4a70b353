"""The results of a program, as types for documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._errors import ImageError
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.decode import DAMAGED, decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._ship.manifest.entry import SavedKind


class Returns:
    """The types of a function's result, for each kind of arguments.

    Parameters
    ----------
    array : str
        The type of an array that it makes.
    argument : callable
        The type of an argument, given its entry in the kind.
    """

    def __init__(self, array: str, argument: Callable[[Any], str]) -> None:
        self._array = array
        self._argument = argument

    def of(self, saved: SavedKind, words: bytes, source: str) -> list[str]:
        """Return the distinct types that the paths of a kind return.

        Raise ImageError if the words are not a program.
        """
        try:
            # Use the manifest's constants, so a stub loads nothing.
            tree = decode("", words, saved.texts, saved.constants.__getitem__)
            found = [self._value(leaf.effects[-1].value, saved) for leaf in tree.leaves()]
        except DAMAGED as error:
            said = f"{saved.program} is not a valid program: {error!r}"
            raise ImageError(said, source=source) from None
        return list(dict.fromkeys(found))

    def _value(self, value: tuple[Any, ...], saved: SavedKind) -> str:
        kind, *rest = value
        if kind == oc.V_NONE:
            return "None"
        if kind in _NUMBERS:
            return _NUMBERS[kind]
        if kind == oc.V_ARRAY:
            return self._array
        if kind == oc.V_ARGUMENT:
            return self._argument(saved.kind[rest[0]])
        if kind == oc.V_ELEMENT:
            return self._argument(saved.kind[rest[0]][1][rest[1]])
        if kind == oc.V_CONSTANT:
            constant = rest[0].value
            return "None" if constant is None else _PLAIN.get(type(constant), "Any")
        if kind == oc.V_MADE:
            return "Any"
        if kind == oc.V_DICT:
            return f"dict[str, {union([self._value(one, saved) for _, one in rest[0]])}]"
        items = [self._value(one, saved) for one in rest[0]]
        if kind == oc.V_TUPLE:
            return f"tuple[{', '.join(items) or '()'}]"
        return f"list[{union(items)}]"


def union(types: list[str]) -> str:
    """Return the union of types."""
    return " | ".join(dict.fromkeys(types)) or "Any"


_NUMBERS = {oc.V_INT: "int", oc.V_FLOAT: "float", oc.V_BOOL: "bool"}
_PLAIN = {bool: "bool", int: "int", float: "float", str: "str"}
