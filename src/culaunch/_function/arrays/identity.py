"""``is`` in a body: stand-ins cannot answer it, so the code of a body asks :func:`is_same`."""

from __future__ import annotations

import dis
import functools
import types
from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._base.places import here
from culaunch._function.arrays.array import StandIn
from culaunch._function.arrays.pointers import Pointer
from culaunch._function.body.bodies import current
from culaunch._function.symbolic.symbols import foreign_kind, is_symbolic, kind_of
from culaunch._launch.formats.dtype import DType, find_dtype

if TYPE_CHECKING:
    from types import CodeType

# The names of modules that no body imports: the replacement of __import__ answers them.
SAME, OTHER = "<is>", "<is not>"
_IMPORT = dis.opmap["IMPORT_NAME"]


def asking(code: CodeType) -> CodeType:
    """Return code that asks the ``__import__`` of its builtins for each ``is``; None needs none."""
    return _asking(code, code.co_filename)


# Equal code may be of two files.
@functools.lru_cache(maxsize=1024)
def _asking(code: CodeType, _: str) -> CodeType:
    # IMPORT_NAME takes two values and calls a function that a body's builtins replace. It is as
    # long as IS_OP in every version, so all offsets and tables of the code stay as they are.
    text, names = bytearray(code.co_code), code.co_names
    before: dis.Instruction | None = None
    for step in dis.get_instructions(code):
        if step.opname == "IS_OP" and not _is_none(before):
            name = OTHER if step.arg else SAME
            if name not in names:
                names = (*names, name)
            if names.index(name) > 255:
                raise TypeError(
                    f"{code.co_name} has more than 250 names and compares by `is`: divide it"
                )
            text[step.offset : step.offset + 2] = _IMPORT, names.index(name)
        if step.opname != "CACHE":
            before = step
    constants = tuple(asking(one) if isinstance(one, types.CodeType) else one
                      for one in code.co_consts)  # fmt: skip
    is_same_code = all(new is old for new, old in zip(constants, code.co_consts, strict=True))
    if names is code.co_names and is_same_code and text == code.co_code:
        return code
    return code.replace(co_code=bytes(text), co_names=names, co_consts=constants)


def _is_none(step: dis.Instruction | None) -> bool:
    return step is not None and step.opname == "LOAD_CONST" and step.argval is None


def is_same(left: Any, right: Any) -> bool:
    """Tell whether two objects of a body are one in plain Python, or refuse.

    Raises
    ------
    TypeError
        With the line, where that depends on more than shapes and numbers.
    """
    if left is right:
        return True
    for x, y in ((left, right), (right, left)):
        if is_symbolic(x):
            return _is_number(x, y)
        if foreign_kind(x) is bool:  # a framework's own symbol
            return (isinstance(y, bool) or foreign_kind(y) is bool) and bool(x) is bool(y)
        if isinstance(x, StandIn):
            return _is_array(x, y)
        if isinstance(x, Pointer) and isinstance(y, (Pointer, int)):
            _refuse(f"addresses are compared by `is`: {_DECIDE}")
        if isinstance(x, DType) and not isinstance(y, str) and find_dtype(y) is not None:
            _refuse("element types are compared by `is`: use ==")
        if x is StandIn and _is_array_type(y):
            _refuse(_FRAMEWORK.format("an array"))
    return False


def identity_of(value: Any) -> int:
    """Return what ``id`` does, in a body."""
    if isinstance(value, StandIn):
        _refuse(f"id() of {value._root.name} is asked for, which a stand-in has not: {_DECIDE}")
    if is_symbolic(value):
        _refuse("id() of a number of a call is asked for: use ==")
    return id(value)


def is_instance(value: Any, kinds: Any) -> bool:
    """Return what ``isinstance`` does, in a body."""
    if isinstance(value, StandIn) and any(map(_is_array_type, _flat(kinds))):
        _refuse(_FRAMEWORK.format(value._said()))
    return isinstance(value, kinds)


def _is_number(x: Any, y: Any) -> bool:
    kind, other = kind_of(x), kind_of(y)
    if kind == other == "b":
        return bool(x) is bool(y)
    if kind == other:
        _refuse("numbers of a call are compared by `is`: use ==")
    return False  # objects of two types


def _is_array(x: StandIn, y: Any) -> bool:
    # The body's own arrays and views are objects that no caller has.
    if not _is_argument(x):
        return False
    if isinstance(y, StandIn):
        other = y._root.name if _is_argument(y) else None
    else:
        other = "an array that the body closes over" if _is_array_type(type(y)) else None
    if other is not None:
        _refuse(
            f"{x._root.name} and {other} are compared by `is`, and arrays are stand-ins in a body: "
            f"{_DECIDE}"
        )
    return False


def _is_argument(x: StandIn) -> bool:
    return x._is_whole and x._root.kind == "argument"


def _is_array_type(kind: Any) -> bool:
    """Tell whether a class is of a framework's arrays."""
    return kind is not StandIn and any(
        hasattr(kind, name) for name in ("__dlpack__", "__cuda_array_interface__")
    )


def _flat(kinds: Any) -> list[Any]:
    if isinstance(kinds, tuple):
        return [one for each in kinds for one in _flat(each)]
    return _flat(kinds.__args__) if isinstance(kinds, types.UnionType) else [kinds]


def _refuse(text: str) -> NoReturn:
    body, error = current(), TypeError(f"at {here().text()}: {text}")
    raise error if body is None else body.refuse(error)


_DECIDE = "decide before the call, and pass a bool"
_FRAMEWORK = (
    "the type of {} is asked for, and the framework of an array is not part of its kind: " + _DECIDE
)
