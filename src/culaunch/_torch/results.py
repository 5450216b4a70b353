"""A function's results as the flat outputs of an operator, and how to rebuild them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.effects import View

if TYPE_CHECKING:
    from collections.abc import Callable

# How to build a result: ("output", i), ("argument", parameter, element or None), ("none",),
# ("tuple", items), ("list", items), ("dict", (key, item), ...) or ("made", callable, items).
Template = tuple[Any, ...]
_TYPES = {oc.V_INT: "SymInt", oc.V_FLOAT: "float", oc.V_BOOL: "bool", oc.V_ARRAY: "Tensor"}
_CONSTANTS = {bool: "bool", int: "SymInt", float: "float"}


class ResultReader:
    """Reads the results of one path.

    Parameters
    ----------
    name : str
        The function's name.
    names : tuple of str
        The parameters' names.
    arrays : int
        The number of arguments that are arrays.
    effects : tuple
        The effects of the path; the last one returns.

    Attributes
    ----------
    outputs : list of str
        The types of the operator's outputs in a schema.
    """

    def __init__(
        self, name: str, names: tuple[str, ...], arrays: int, effects: tuple[Any, ...]
    ) -> None:
        self.name = name
        self.names = names
        self.arrays = arrays
        self.sources = {one.array: one.source for one in effects if isinstance(one, View)}
        self.outputs: list[str] = []
        self._memory: list[int] = []

    def read(self, value: tuple[Any, ...]) -> Template:
        """Read a value and its items.

        Raises
        ------
        TypeError
            If two outputs share memory, or one is a view of an argument: torch forbids it.
        """
        kind = value[0]
        if kind == oc.V_NONE:
            return ("none",)
        if kind == oc.V_ARGUMENT:
            return ("argument", value[1], None)
        if kind == oc.V_ELEMENT:
            return ("argument", value[1], value[2])
        if kind in (oc.V_TUPLE, oc.V_LIST):
            return ("tuple" if kind == oc.V_TUPLE else "list", tuple(map(self.read, value[1])))
        if kind == oc.V_DICT:
            return ("dict", tuple((key, self.read(item)) for key, item in value[1]))
        if kind == oc.V_MADE:
            return self._of_maker(value[1].value, tuple(map(self.read, value[2])))
        if kind == oc.V_CONSTANT and type(value[1].value) in _CONSTANTS:
            return self._output(_CONSTANTS[type(value[1].value)])
        if kind not in _TYPES:
            raise TypeError(
                f"{self.name} must return only arrays and numbers, because torch operators return "
                "nothing else"
            )
        if kind == oc.V_ARRAY:
            self._note_memory(value[1])
        return self._output(_TYPES[kind])

    def _of_maker(self, maker: Any, items: tuple[Template, ...]) -> Template:
        if hasattr(maker, "_fields"):
            return ("made", maker, items)
        keys = maker.args[0]  # the keys of a dict
        if not all(type(key) in (int, bool, float, str) for key in keys):
            raise TypeError(
                f"{self.name} returns a dict whose keys are not all str or numbers, which a torch "
                "operator cannot return"
            )
        return ("dict", tuple(zip(keys, items, strict=True)))

    def _output(self, kind: str) -> Template:
        self.outputs.append(kind)
        return ("output", len(self.outputs) - 1)

    def _note_memory(self, array: int) -> None:
        # A view of a view belongs to the array at the end of the chain.
        while array in self.sources:
            array = self.sources[array]
        if array < self.arrays:
            raise aliases(self.name, "a view of an argument")
        if array in self._memory:
            raise aliases(self.name, "two arrays in the same memory")
        self._memory.append(array)


def aliases(name: str, what: str) -> TypeError:
    """Return the error for a result that shares memory."""
    return TypeError(
        f"{name} returns {what}, but torch forbids operators whose outputs share memory with "
        "their inputs or each other. If an argument is written in place, return None (the caller "
        "has the array), or return a new array"
    )


def is_plain(template: Template) -> bool:
    """Tell whether an operator returns its function's result: one output, several, or None."""
    if template[0] != "tuple":
        return template[0] in ("output", "none")
    items = template[1]
    return len(items) > 1 and items == tuple(("output", i) for i in range(len(items)))


def plain(name: str, names: tuple[str, ...], template: Template) -> Template:
    """Return the results of an operator that users call: one value, or one tuple.

    None in a tuple is allowed, because the gradients of a backward function contain it.

    Raises
    ------
    TypeError
        If it cannot return that.
    """
    kind = template[0]
    is_several = kind in ("tuple", "list", "made")
    items = template[-1] if is_several else (template,)
    for one in items:
        if one[0] == "argument":
            raise aliases(name, f"its argument {names[one[1]]}")
        if one[0] not in ("output", "none"):
            raise TypeError(
                f"{name} returns a nested tuple, a dict or another object, but a torch operator "
                "must return arrays, numbers, or one tuple of these"
            )
    if is_several and len(items) < 2:
        raise TypeError(
            f"{name} returns a tuple or list of {len(items)}, but a torch operator returns one "
            "value by itself: return it without the tuple"
        )
    return ("tuple", items) if is_several else template


def with_none(template: Template, outputs: list[str]) -> tuple[str | None, ...]:
    """Return the types of a function's results, with None for None in a tuple."""
    if template[0] != "tuple":
        return tuple(outputs)
    return tuple(outputs[one[1]] if one[0] == "output" else None for one in template[1])


def flat(template: Template, result: Any) -> list[Any]:
    """Return the operator's outputs in a function's result."""
    kind = template[0]
    if kind == "output":
        return [result]
    if kind in ("none", "argument"):
        return []
    if kind == "dict":
        pairs = [(item, result[key]) for key, item in template[1]]
    else:
        pairs = list(zip(template[-1], result, strict=True))
    return [one for item, value in pairs for one in flat(item, value)]


def as_output(template: Template) -> Callable[[Any], Any]:
    """Return a callable that makes an operator's outputs from its function's result."""

    def outputs(result: Any) -> Any:
        found = flat(template, result)
        return None if not found else found[0] if len(found) == 1 else tuple(found)

    return outputs


def rebuilder(template: Template, count: int) -> Callable[..., Any]:
    """Return ``rebuild(outputs, *arguments)``, which Dynamo traces: it is plain Python.

    `outputs` is the result of an operator with that number of outputs.
    """
    scope: dict[str, Any] = {}
    text = _text(template, count, scope)
    makers = ", ".join(scope)
    # Generate source text, because Dynamo traces plain Python and would break the graph at nested
    # closures.
    source = (
        f"def made({makers}):\n    def rebuild(outputs, *arguments):\n        return {text}\n"
        "    return rebuild"
    )
    names: dict[str, Any] = {}
    exec(compile(source, "<what a function returns>", "exec"), names)  # noqa: S102 - our own text
    made: Callable[..., Any] = names["made"](*scope.values())
    return made


def _text(template: Template, count: int, scope: dict[str, Any]) -> str:
    kind = template[0]
    if kind == "output":
        return "outputs" if count == 1 else f"outputs[{template[1]}]"
    if kind == "none":
        return "None"
    if kind == "argument":
        element = "" if template[2] is None else f"[{template[2]}]"
        return f"arguments[{template[1]}]{element}"
    if kind == "dict":
        pairs = (f"{key!r}: {_text(item, count, scope)}" for key, item in template[1])
        return f"{{{', '.join(pairs)}}}"
    items = [_text(item, count, scope) for item in template[-1]]
    if kind == "list":
        return f"[{', '.join(items)}]"
    if kind == "tuple":
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    maker = f"maker_{len(scope)}"
    scope[maker] = template[1]
    return f"{maker}({', '.join(items)})"
