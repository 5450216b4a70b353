"""``is`` in a body: stand-ins cannot answer it, so a body's code calls :func:`is_same`."""

from __future__ import annotations

import dis
import functools
import types
from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._base.places import here
from culaunch._function.arrays.array import StandIn
from culaunch._function.arrays.pointers import Pointer
from culaunch._function.body.bodies import current
from culaunch._function.symbolic.symbols import KINDS, foreign_kind, is_symbolic, kind_of
from culaunch._launch.formats.dtype import DType, find_dtype

if TYPE_CHECKING:
    from types import CodeType

Markers = tuple[str, str]
# The names of modules that no body imports. The replacement of __import__ answers them. A name's
# index is the operand of IS_OP.
MARKERS: Markers = ("<is>", "<is not>")
_MOST_NAMES = 256  # the limit of a two-byte instruction
_IMPORT, _IS, _CONSTANT = (dis.opmap[name] for name in ("IMPORT_NAME", "IS_OP", "LOAD_CONST"))
# The replaced Python classes, by the identity of the class that replaces each in a body.
STANDS_FOR: dict[int, Any] = {id(kind): plain for plain, kind in KINDS.items()}


def asking(code: CodeType) -> CodeType:
    """Return code that calls ``__import__`` for each ``is``, or the code itself.

    The functions in it are replaced, too.

    Raise TypeError if it has too many names to compare by ``is`` in a body.
    """
    return _asking(code, code.co_filename)


def asking_alone(code: CodeType) -> tuple[CodeType, Markers]:
    """Return code with ``is`` replaced, but not in inner functions, and the names that it imports.

    Code of any size works: if it has no room for more names, its own names are used.
    """
    return _replaced(code, code.co_consts, may_borrow=True)


# Equal code objects may come from two files.
@functools.lru_cache(maxsize=1024)
def _asking(code: CodeType, _: str) -> CodeType:
    constants = tuple(
        asking(one) if isinstance(one, types.CodeType) else one for one in code.co_consts
    )
    return _replaced(code, constants, may_borrow=False)[0]


def _replaced(
    code: CodeType, constants: tuple[Any, ...], *, may_borrow: bool
) -> tuple[CodeType, Markers]:
    # IMPORT_NAME takes two values and calls a function that a body's builtins replace. It is as
    # long as IS_OP in every version, so all offsets and tables of the code stay as they are.
    text, names, markers = bytearray(code.co_code), code.co_names, MARKERS
    offsets = _comparisons(code, text)
    used = {text[offset + 1] for offset in offsets}
    names += tuple(markers[i] for i in sorted(used) if markers[i] not in names)
    if offsets and len(names) > _MOST_NAMES:
        names = code.co_names
        markers = _borrowed(code) if may_borrow else _refuse_names(code)
    for offset in offsets:
        text[offset : offset + 2] = _IMPORT, names.index(markers[text[offset + 1]])
    is_same_code = all(new is old for new, old in zip(constants, code.co_consts, strict=True))
    if not offsets and is_same_code:
        return code, markers
    return code.replace(co_code=bytes(text), co_names=names, co_consts=constants), markers


def _borrowed(code: CodeType) -> Markers:
    """Return two names of the code that it does not import."""
    imported = {one.argval for one in dis.get_instructions(code) if one.opcode == _IMPORT}
    same, other = [one for one in code.co_names[:_MOST_NAMES] if one not in imported][:2]
    return same, other


def _refuse_names(code: CodeType) -> NoReturn:
    raise TypeError(
        f"{code.co_name} ({code.co_filename}:{code.co_firstlineno}) must have at most 250 names, "
        "because it compares with `is`: split it, or call it before the body"
    )


def _comparisons(code: CodeType, text: bytearray) -> list[int]:
    """Return the offsets of ``is`` comparisons, except with the constant None."""
    # Every instruction has two bytes, and a cache is zeros in co_code.
    found = [i for i in range(0, len(text), 2) if text[i] == _IS] if _IS in text[::2] else []
    of_none = [i for i in found if _loads_none(code, text, i - 2)]
    if not of_none:
        return found
    # Skip jump targets: x is (y if n else None).
    targets = dis.findlabels(code.co_code)  # type: ignore[arg-type]
    return [i for i in found if i not in of_none or i in targets]


def _loads_none(code: CodeType, text: bytearray, offset: int) -> bool:
    if offset < 0 or text[offset] != _CONSTANT:
        return False
    number = text[offset + 1]
    if offset and text[offset - 2] == dis.EXTENDED_ARG:
        number += text[offset - 1] << 8
    return number < len(code.co_consts) and code.co_consts[number] is None


def is_same(left: Any, right: Any) -> bool:
    """Tell whether two objects of a body are identical in plain Python, or refuse.

    Raise TypeError if this depends on more than shapes and numbers. The message contains the line.
    """
    left, right = STANDS_FOR.get(id(left), left), STANDS_FOR.get(id(right), right)
    if left is right:
        return True
    for x, y in ((left, right), (right, left)):
        if is_symbolic(x):
            return _is_number(x, y)
        if foreign_kind(x) is bool:  # a framework's own symbol
            return (isinstance(y, bool) or foreign_kind(y) is bool) and bool(x) is bool(y)
        # Use type(): isinstance reads an object's __class__, which may run code.
        if issubclass(type(x), StandIn):
            return _is_array(x, y)
        if type(x) is Pointer and issubclass(type(y), (Pointer, int)):
            _refuse(f"addresses cannot be compared with `is` in a body: {_DECIDE}")
        if type(x) is DType and not isinstance(y, str) and find_dtype(y) is not None:
            _refuse("element types cannot be compared with `is` in a body: use ==")
        if x is StandIn and _is_array_type(y):
            _refuse(_FRAMEWORK.format("an array"))
    return False


def identity_of(value: Any) -> int:
    """Return the result of ``id`` in a body."""
    if isinstance(value, StandIn):
        _refuse(
            f"the id() of {value._root.name} is not known in a body, where a stand-in takes its "
            f"place: {_DECIDE}"
        )
    if is_symbolic(value):
        _refuse("the id() of a number is not known in a body: use ==")
    return id(value)


def is_instance(value: Any, kinds: Any) -> bool:
    """Return the result of ``isinstance`` in a body."""
    if isinstance(value, StandIn) and any(map(_is_array_type, _flat(kinds))):
        _refuse(_FRAMEWORK.format(value._label()))
    return isinstance(value, kinds)


def _is_number(x: Any, y: Any) -> bool:
    kind, other = kind_of(x), kind_of(y)
    if kind == other == "b":
        return bool(x) is bool(y)
    if kind == other:
        _refuse("numbers of a call cannot be compared with `is`: use ==")
    return False  # objects of different types


def _is_array(x: StandIn, y: Any) -> bool:
    # No caller holds the body's own arrays and views.
    if not _is_argument(x):
        return False
    if issubclass(type(y), StandIn):
        other = y._root.name if _is_argument(y) else None
    else:
        other = "an array that the body closes over" if _is_array_type(type(y)) else None
    if other is not None:
        _refuse(
            f"{x._root.name} and {other} cannot be compared with `is`, because arrays are "
            f"stand-ins in a body: {_DECIDE}"
        )
    return False


def _is_argument(x: StandIn) -> bool:
    return x._is_whole and x._root.kind == "argument"


def _is_array_type(kind: Any) -> bool:
    """Tell whether a class is a framework's array type."""
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
    "the type of {} is not known in a body, because arrays of all frameworks share one recording: "
    + _DECIDE
)
