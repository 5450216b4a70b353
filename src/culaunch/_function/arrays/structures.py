"""Structures passed by value, whose fields are expressions."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

from culaunch._base.places import here
from culaunch._base.values import counted, spell
from culaunch._function.arrays.array import StandIn
from culaunch._function.arrays.pointers import Pointer
from culaunch._function.symbolic.symbols import is_symbolic

# The kind of number for each value of a ctypes type's ``_type_``.
_INTEGERS = {
    "b": True, "h": True, "i": True, "l": True, "q": True,
    "B": False, "H": False, "I": False, "L": False, "Q": False,
}  # fmt: skip
_FLOATS = {"f": 32, "d": 64}


class Patch(NamedTuple):
    """A field that is written for each call.

    ``kind`` is ``i``, ``u``, ``f``, ``b`` or ``p``: signed, unsigned, float, bool, pointer.
    """

    kind: str
    offset: int
    size: int
    value: Any
    name: str


@functools.lru_cache(maxsize=256)
def shadow(structure: type[ctypes.Structure]) -> type[ctypes.Structure]:
    """Return a subclass of a structure that takes symbolic numbers and arrays in its fields."""
    # From the base class down, as ctypes lays them out.
    fields: dict[str, type] = {}
    for kind in reversed(structure.__mro__):
        for field in getattr(kind, "__dict__", {}).get("_fields_", ()):
            if len(field) == 2:  # not a bit field
                fields[field[0]] = field[1]

    inner = {name for name, kind in fields.items() if issubclass(kind, ctypes.Structure)}

    def put(self: Any, name: str, value: Any) -> None:
        # Overwrite the previous content, whether it was a number or an expression.
        _patches(self).pop(name, None)
        if name in fields and _is_open(value):
            kind, field = fields[name], getattr(structure, name)
            _patches(self)[name] = _patch(structure, name, kind, field, value)
            return
        structure.__setattr__(self, name, value)
        if name in inner:
            _copy_patches(value, getattr(self, name))

    def get(self: Any, name: str) -> Any:
        if name in inner:  # a view of the inner structure, which also takes expressions
            views = _own(self, "_views")
            if name not in views:
                views[name] = shadow(fields[name]).from_buffer(
                    self, getattr(structure, name).offset
                )
            return views[name]
        if name in fields and (patch := _patches(self).get(name)) is not None:
            return patch.value
        return structure.__getattribute__(self, name)

    def make(self: Any, *args: Any, **keywords: Any) -> None:
        # Construct it without the values, because ctypes would refuse expressions.
        structure.__init__(self)
        for name, value in (*zip(fields, args, strict=False), *keywords.items()):
            if name not in fields:
                raise TypeError(f"{structure.__name__} has no field {name!r}")
            setattr(self, name, value)
        if len(args) > len(fields):
            raise TypeError(
                f"{structure.__name__} takes at most {counted(len(fields), 'value')}, one per "
                "field (got "
                f"{len(args)})"
            )

    own_init = structure.__init__ is not ctypes.Structure.__init__
    namespace = {
        "__setattr__": put,
        "__getattribute__": get,
        "__module__": structure.__module__,
    }
    # A structure with its own __init__ keeps it. The assignments there call `put`.
    if not own_init:
        namespace["__init__"] = make
    made: type[ctypes.Structure] = type(structure.__name__, (structure,), namespace)
    return made


def patches_of(value: object, offset: int = 0) -> tuple[Patch, ...]:
    """Return the fields that are expressions, in a structure and in its inner structures."""
    if not isinstance(value, ctypes.Structure):
        return ()
    found = [one._replace(offset=one.offset + offset) for one in _patches(value).values()]
    for name, view in _own(value, "_views").items():
        found += patches_of(view, offset + getattr(type(value), name).offset)
    return tuple(found)


def _own(structure: Any, name: str) -> dict[str, Any]:
    """Return one of the dicts that our structures keep beside their memory."""
    kept: dict[str, Any] = ctypes.Structure.__getattribute__(structure, "__dict__")
    return kept.setdefault(name, {})  # type: ignore[no-any-return]


def _patches(structure: Any) -> dict[str, Patch]:
    return _own(structure, "_patches")


def _copy_patches(source: Any, target: Any) -> None:
    if isinstance(source, ctypes.Structure):
        _own(target, "_patches").clear()
        _own(target, "_patches").update(_patches(source))
        for name, view in _own(source, "_views").items():
            _copy_patches(view, getattr(target, name))


def _is_open(value: object) -> bool:
    return is_symbolic(value) or isinstance(value, (StandIn, Pointer))


def _patch(structure: type, name: str, kind: Any, field: Any, value: Any) -> Patch:
    code = getattr(kind, "_type_", None)
    where = f"at {here().text()}: field {name} of {structure.__name__}"
    is_address = isinstance(value, (StandIn, Pointer))
    if isinstance(code, str) and code in ("P", "z", "Z"):
        if is_address:
            return Patch("p", field.offset, field.size, value, name)
    elif is_address:
        if code in ("Q", "L") and ctypes.sizeof(kind) == 8:
            return Patch("p", field.offset, field.size, value, name)
        raise TypeError(f"{where} must be a pointer to hold an address (got {spell(value)})")
    if isinstance(code, str):
        if code in _INTEGERS:
            return Patch("i" if _INTEGERS[code] else "u", field.offset, field.size, value, name)
        if code in _FLOATS:
            return Patch("f", field.offset, field.size, value, name)
        if code == "?":
            return Patch("b", field.offset, field.size, value, name)
        if code == "P":
            return Patch("u", field.offset, field.size, value, name)
    raise TypeError(f"{where} must be a number or a pointer to hold a value of a call")
