"""What a program gives back, as types to read."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from culaunch._errors import ImageError
from culaunch._function import opcodes as oc
from culaunch._ship.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._ship.entry import SavedKind
    from culaunch._ship.plan import Block


class Returns:
    """The types of what a function returns, for each kind of arguments.

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
        """Return the types that the paths of a kind return, each once.

        Raises
        ------
        ImageError
            If the words are no program.
        """
        try:
            plan = Plan(words, saved.texts)
            found = [
                self._value(list(reversed(block.effects[-1][1])), saved)
                for block in plan.blocks
                if block.effects and not _raises(plan, block)
            ]
        except (IndexError, KeyError, ValueError, TypeError, struct.error) as error:
            raise ImageError(f"{saved.program} is no program: {error!r}", source=source) from None
        return list(dict.fromkeys(found))

    def _value(self, words: list[int], saved: SavedKind) -> str:
        """Take a value off the end of the words, which are in reverse."""
        kind = words.pop()
        if kind == oc.V_NONE:
            return "None"
        if kind in _NUMBERS:
            words.pop()
            return _NUMBERS[kind]
        if kind == oc.V_ARRAY:
            words.pop()
            return self._array
        if kind in (oc.V_ARGUMENT, oc.V_ELEMENT):
            entry = saved.kind[words.pop()]
            if kind == oc.V_ARGUMENT:
                return self._argument(entry)
            return self._argument(entry[1][words.pop()])
        if kind == oc.V_CONSTANT:
            value = saved.constants[words.pop()]
            return "None" if value is None else _PLAIN.get(type(value), "Any")
        if kind == oc.V_MADE:
            words.pop()
        count = words.pop()
        if kind == oc.V_DICT:
            values = []
            for _ in range(count):
                words.pop()
                values.append(self._value(words, saved))
            return f"dict[str, {union(values)}]"
        items = [self._value(words, saved) for _ in range(count)]
        if kind == oc.V_MADE:
            return "Any"
        if kind == oc.V_TUPLE:
            return f"tuple[{', '.join(items) or '()'}]"
        return f"list[{union(items)}]"


def union(types: list[str]) -> str:
    """Return a type that is one of several."""
    return " | ".join(dict.fromkeys(types)) or "Any"


def _raises(plan: Plan, block: Block) -> bool:
    """Tell whether a block ends in an error always: a check of what is never true."""
    for step in block.steps:
        if step.op.name == "CHECK":
            condition = plan.definitions[step.words[0]]
            if condition.op.name == "CONST_B" and condition.words[1] == 0:
                return True
    return False


_NUMBERS = {oc.V_INT: "int", oc.V_FLOAT: "float", oc.V_BOOL: "bool"}
_PLAIN = {bool: "bool", int: "int", float: "float", str: "str"}
