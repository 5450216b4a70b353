"""The return values of a body, as the end of a program."""

from __future__ import annotations

import functools
import gc
import types
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._function.arrays.array import StandIn
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.effects import Constant
from culaunch._function.programs.texts import has_token
from culaunch._function.symbolic.numbers import SymBool, SymFloat, SymInt
from culaunch._function.symbolic.symbols import is_symbolic
from culaunch._launch.formats.dtype import DType

if TYPE_CHECKING:
    from culaunch._function.tracing.trace import TraceBody

_KINDS = {SymInt: oc.V_INT, SymFloat: oc.V_FLOAT, SymBool: oc.V_BOOL}
_CONSTANTS = (bool, int, float, complex, str, bytes, DType)


def returned(body: TraceBody, value: Any) -> tuple[Any, ...]:
    """Return a value in the form of an effect: its kind, and its parts."""
    if value is None:
        return (oc.V_NONE,)
    if is_symbolic(value):
        return (_KINDS[type(value)], body.register(value))
    if isinstance(value, StandIn):
        root = value._root
        if value._is_whole and root.kind == "argument":
            where = (root.parameter,) if root.element < 0 else (root.parameter, root.element)
            return (oc.V_ARGUMENT if root.element < 0 else oc.V_ELEMENT, *where)
        return (oc.V_ARRAY, body.viewed(value))
    if type(value) in (tuple, list):
        items = tuple(returned(body, item) for item in value)
        return (oc.V_TUPLE if type(value) is tuple else oc.V_LIST, items)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        # A named tuple is made by its own type.
        return (oc.V_MADE, Constant(type(value)), tuple(returned(body, item) for item in value))
    if type(value) is dict:
        keys = tuple(value)
        if all(type(key) is str for key in keys):
            pairs = tuple((key, returned(body, item)) for key, item in value.items())
            return (oc.V_DICT, pairs)
        # Other keys are constants of the program. The function that makes the dict gets the values.
        make = Constant(dict_maker(keys))
        return (oc.V_MADE, make, tuple(returned(body, item) for item in value.values()))
    if isinstance(value, str) and has_token(value):
        raise TypeError(
            f"{body.name} returns a str that contains a number, which only a call has: call the "
            "function"
        )
    if isinstance(value, _CONSTANTS):
        return (oc.V_CONSTANT, Constant(value))
    if hasattr(type(value), "__dlpack__"):
        return (oc.V_CONSTANT, Constant(value))
    raise TypeError(
        f"{body.name} must return arrays, numbers, None, or tuples, lists and dicts of these (got "
        f"{spell(value)})"
    )


def require_held(name: str, value: Any) -> None:
    """Refuse a real array that only the body's result holds, because the body made it.

    Every call would return this array.
    """
    arrays, containers, waiting = [], [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (tuple, list, dict)):
            containers.append(one)
            waiting += one.values() if isinstance(one, dict) else one
        elif not isinstance(one, StandIn) and hasattr(type(one), "__dlpack__"):
            arrays.append(one)
    ours = {id(one) for one in (arrays, containers, waiting, *containers)}
    for array in arrays:
        holders = gc.get_referrers(array)
        if all(id(one) in ours or type(one) is types.FrameType for one in holders):
            raise TypeError(
                f"{name} returns an array that its body made, {spell(array)}. The body runs once, "
                "so every call would return this array: allocate with cl.empty or cl.zeros"
            )


def is_dict_maker(value: functools.partial[Any]) -> bool:
    """Tell whether a program's constant makes a dict with keys other than str."""
    return value.func is _dict


def dict_maker(keys: tuple[Any, ...]) -> functools.partial[Any]:
    """Return a callable that makes a dict with these keys from its arguments."""
    return functools.partial(_dict, keys)


def _dict(keys: tuple[Any, ...], *values: Any) -> dict[Any, Any]:
    return dict(zip(keys, values, strict=True))
