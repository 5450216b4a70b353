"""An operator's schema, from the declaration and the body of its function."""

from __future__ import annotations

import collections.abc
import math
import typing
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.values import spell
from culaunch._function import DType
from culaunch._function.declarations.annotations import Array, wanted
from culaunch._function.declarations.declaration import KEYWORD_ONLY
from culaunch._launch.formats.dtype import find_dtype

if TYPE_CHECKING:
    from culaunch._function.declarations.declaration import Declaration

# A parameter's type -> its letter in the native dispatch; lower case means optional.
CODES = {
    "Tensor": "T", "Tensor[]": "L", "SymInt": "I", "float": "F", "bool": "B", "str": "S",
    "ScalarType": "D",
}  # fmt: skip
# The same types, as torch spells them in a parsed schema.
_GIVEN = {**{one: one for one in CODES}, "int": "SymInt", "List[Tensor]": "Tensor[]"}
_RESULTS = ("Tensor", "SymInt", "float", "bool")
_PLAIN = {int: "SymInt", float: "float", bool: "bool", str: "str"}


class Parameter(NamedTuple):
    """A parameter of an operator.

    Attributes
    ----------
    name : str
    type : str
        As in a schema, without the question mark.
    is_optional : bool
    default : object
        ``Parameter.missing`` if there is none.
    is_keyword_only : bool
    array : Array or None
        The array in its annotation.
    """

    name: str
    type: str
    is_optional: bool
    default: Any
    is_keyword_only: bool
    array: Array | None

    @property
    def code(self) -> str:
        """The letter of its type."""
        code = CODES[self.type]
        return code.lower() if self.is_optional else code

    def text(self, alias: str) -> str:
        """Write it, with the mark of a written tensor, or an empty mark."""
        base = self.type
        if alias:
            base = f"Tensor({alias}!)" + base.removeprefix("Tensor")
        mark = "?" if self.is_optional else ""
        default = "" if self.default is MISSING else f"={_default(self)}"
        return f"{base}{mark} {self.name}{default}"


MISSING = object()


def parameters_of(
    declaration: Declaration, known: dict[str, Parameter] | None = None
) -> tuple[Parameter, ...]:
    """Return the parameters of an operator, from annotations and defaults.

    A parameter with neither has the type in ``known``. Without that, it is a tensor.

    Raises
    ------
    TypeError
        If no operator can have the type of a parameter.
    """
    found = tuple(
        known[name]._replace(is_keyword_only=kind == KEYWORD_ONLY)
        if known and name in known and _says_nothing(declaration, name)
        else _parameter(declaration, name, kind == KEYWORD_ONLY)
        for name, kind in declaration.parameters
    )
    if not any(one.type.startswith("Tensor") for one in found):
        raise TypeError(
            f"{declaration.name} must have an array parameter, because torch selects an "
            "operator's device by its tensors: add one"
        )
    return found


def given_parameters(parameters: tuple[Parameter, ...], given: Any) -> tuple[Parameter, ...]:
    """Return the parameters with the types of a given schema, as torch has parsed it.

    Raises
    ------
    ValueError
        If it names other parameters, or has a type that culaunch's operators do not support.
    """
    names = [argument.name for argument in given.arguments]
    if names != [one.name for one in parameters]:
        raise ValueError(
            "schema must have the parameters of the function, "
            f"{', '.join(one.name for one in parameters)} (got {', '.join(names)})"
        )
    found = []
    for one, argument in zip(parameters, given.arguments, strict=True):
        text = str(argument.real_type)
        base = text.removeprefix("Optional[")
        is_optional = base != text
        kind = _GIVEN.get(base[:-1] if is_optional else base)
        if kind is None:
            raise ValueError(
                f"the type of parameter {one.name} in schema must be one of {', '.join(CODES)}, "
                f"or one of these with a question mark (got {text})"
            )
        found.append(one._replace(type=kind, is_optional=is_optional))
    return tuple(found)


def given_outputs(given: Any) -> tuple[str, ...]:
    """Return the types of a given schema's results.

    Raises
    ------
    ValueError
        If culaunch's operators cannot return a type.
    """
    found = tuple(_GIVEN.get(str(one.real_type), str(one.real_type)) for one in given.returns)
    for one in found:
        if one not in _RESULTS:
            raise ValueError(
                f"each result in schema must be one of {', '.join(_RESULTS)} (got {one})"
            )
    return found


def schema_text(
    parameters: tuple[Parameter, ...], mutates: tuple[str, ...], outputs: tuple[str, ...]
) -> str:
    """Write a schema without the operator's name: ``(Tensor x, float a) -> Tensor``."""
    # Each written tensor has its own letter, which tells torch that no two of them share memory.
    letters = iter("abcdefghijklmnopqrstuvwxyz" * (1 + len(parameters) // 26))
    words: list[str] = []
    for one in parameters:
        if one.is_keyword_only and "*" not in words:
            words.append("*")
        words.append(one.text(next(letters) if one.name in mutates else ""))
    given = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    return f"({', '.join(words)}) -> {given}"


def _says_nothing(declaration: Declaration, name: str) -> bool:
    return _annotation(declaration, name) is None and name not in declaration.defaults


def _annotation(declaration: Declaration, name: str) -> Any:
    """Return an annotation; None if it is missing or has no information."""
    found = declaration.annotations.get(name)
    return None if found is Any or found is object else found


def _parameter(declaration: Declaration, name: str, is_keyword_only: bool) -> Parameter:
    # None is a valid default, so a marker represents a missing default.
    default = declaration.defaults.get(name, MISSING)
    annotation = _annotation(declaration, name)
    kind, is_optional, array = _type(declaration, name, annotation, default)
    is_optional = is_optional or default is None
    return Parameter(name, kind, is_optional, default, is_keyword_only, array)


def _type(
    declaration: Declaration, name: str, annotation: Any, default: Any
) -> tuple[str, bool, Array | None]:
    if annotation is None:
        if default is MISSING or default is None:
            return "Tensor", default is None, Array()
        # By the exact type, because a bool is also an int, but is not a number here.
        if type(default) in _PLAIN:
            return _PLAIN[type(default)], False, None
        if not isinstance(default, str) and find_dtype(default) is not None:
            return "ScalarType", False, None
    else:
        is_optional, inner = _without_none(annotation)
        if (array := _array_list(inner)) is not None:
            return "Tensor[]", is_optional, array
        if inner is DType or getattr(inner, "__name__", None) == "dtype":
            return "ScalarType", is_optional, None
        # By its name, as torch need not be imported.
        if _is_tensor(inner):
            return "Tensor", is_optional, Array()
        want = wanted(inner)
        if want is not None and want.array is not None and not want.plain:
            return "Tensor", is_optional or want.is_optional, want.array
        if want is not None and want.array is None and len(want.plain) == 1:
            return _PLAIN[want.plain[0]], is_optional or want.is_optional, None
        # A schema has no union of int and float, and a float accepts an int.
        if want is not None and set(want.plain) == {int, float} and want.array is None:
            return "float", is_optional or want.is_optional, None
    shown = f"the default {spell(default)}" if annotation is None else f"{annotation!r}"
    raise TypeError(
        f"{declaration.name}: parameter {name} is {shown}. The parameters of a torch operator "
        "must be arrays (cl.Array), lists of arrays, int, float, bool, str, dtypes (cl.DType), or "
        "None in their place. Annotate it as one of these, or pass schema="
    )


def _without_none(annotation: Any) -> tuple[bool, Any]:
    """Take None out of a union."""
    import types

    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = typing.get_args(annotation)
        rest = tuple(one for one in parts if one is not type(None))
        # No schema has a union of several types. The function distinguishes them.
        if len(rest) == 1 and len(parts) == 2:
            return True, rest[0]
    return False, annotation


def _array_list(annotation: Any) -> Array | None:
    """Return the array in the annotation of a list of arrays."""
    origin = typing.get_origin(annotation)
    if origin not in (list, tuple, collections.abc.Sequence):
        return None
    items = [one for one in typing.get_args(annotation) if one is not ...]
    if len(items) != 1:
        return None
    if _is_tensor(items[0]):
        return Array()
    want = wanted(items[0])
    return None if want is None or want.plain or want.is_optional else want.array


def _is_tensor(annotation: Any) -> bool:
    return (
        isinstance(annotation, type)
        and annotation.__name__ == "Tensor"
        and annotation.__module__.partition(".")[0] == "torch"
    )


def _default(parameter: Parameter) -> str:
    value = parameter.default
    if isinstance(value, str) and parameter.type == "str":
        if not value.isprintable() or '"' in value or "\\" in value:
            raise TypeError(
                f"parameter {parameter.name} must have a default that torch's schemas support "
                f"(got {value!r})"
            )
        return f'"{value}"'
    if parameter.type == "ScalarType" and value is not None:
        found = find_dtype(value)
        return str(value) if found is None else found.name
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError(
            f"parameter {parameter.name} must have a default that torch's schemas support (got "
            f"{value!r})"
        )
    return repr(float(value)) if parameter.type == "float" and value is not None else repr(value)
