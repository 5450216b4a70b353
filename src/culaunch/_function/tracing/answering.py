"""The builtins of code that a body runs. For a stand-in, some of them ask the body."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from culaunch._core import asking, asking_import
from culaunch._function.arrays.array import StandIn
from culaunch._function.arrays.identity import MARKERS, STANDS_FOR, identity_of, is_instance
from culaunch._function.symbolic.symbols import Number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from culaunch._function.arrays.identity import Markers

_ASKING: dict[str, tuple[Callable[..., Any], tuple[type, ...]]] = {
    "isinstance": (is_instance, (StandIn,)),
    "id": (identity_of, (StandIn, Number)),
}
ASKING = frozenset(_ASKING)


class Builtins(dict[str, Any]):
    """Replaced builtins. All others are looked up in the original dict, which may change.

    Parameters
    ----------
    plain : dict
        The builtins of the code. Missing functions are not added.
    markers : tuple of str
        The names that answer ``is`` and ``is not`` in the code.
    types : mapping
        The result of ``type`` for a number, by its class. If empty, ``type`` is Python's own.
    modules : mapping
        The replacements of imported modules.
    """

    # This is in C throughout, so a lookup runs no Python code.
    __missing__ = property(operator.attrgetter("find"))

    def __init__(
        self,
        plain: dict[str, Any],
        markers: Markers = MARKERS,
        *,
        types: Mapping[Any, Any],
        modules: Mapping[ModuleType, Any],
    ) -> None:
        self.plain, self.find = plain, plain.__getitem__
        self["__import__"] = asking_import(plain, *markers, modules)
        for name, (answer, kinds) in _ASKING.items():
            if name in plain:
                self[name] = asking(name, plain, answer, kinds)
                STANDS_FOR[id(self[name])] = plain[name]
        if types and "type" in plain:
            self["type"] = _made_type(
                asking("type", plain, lambda one: types[type(one)], (Number,))
            )

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.plain

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name."""
        return self[name] if name in self else default  # noqa: SIM401 - this is it


class _Type:
    """``type`` with another call and the same attributes."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        return getattr(type, name)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, type)

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return (type,)

    def __getitem__(self, item: Any) -> Any:
        return type[item]

    def __or__(self, other: Any) -> Any:
        return type | other

    def __ror__(self, other: Any) -> Any:
        return other | type

    def __eq__(self, other: object) -> bool:
        return other is type or issubclass(type(other), _Type)

    def __hash__(self) -> int:
        return hash(type)

    def __repr__(self) -> str:
        return repr(type)


def _made_type(call: Callable[..., Any]) -> Any:
    # Make a class for each, because a builtin function in a class is called without the object.
    made = type("type", (_Type,), {"__slots__": (), "__call__": call})()
    STANDS_FOR[id(made)] = type
    return made
