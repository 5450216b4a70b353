"""The target of a custom call, as a text in XLA's program, and its decoding."""

from __future__ import annotations

import itertools
import json
import sys
from typing import TYPE_CHECKING, Any

from culaunch._base.fork_lock import ForkLock
from culaunch._base.values import counted
from culaunch._core import Function as CoreFunction
from culaunch._launch.formats.dtype import DType, as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# An object that other processes cannot name gets a number in this process.
_known: dict[int, Any] = {}
_numbers: dict[int, int] = {}  # id -> number; _known keeps the objects alive
_count = itertools.count(1)
_lock = ForkLock()

ARRAY = 0  # an argument of Target.arrays; n: a tuple of n, -1 - n: a list of n
VALUE = -1


def call_text(function: Any, values: Sequence[Any], arrays: Sequence[int], writes: Any) -> str:
    """Write a call as text: the function, each argument that is not an array, the written arrays.

    Parameters
    ----------
    function : Function
    values : sequence
        One for each parameter.
    arrays : sequence of int
        For each parameter: ``VALUE``, ``ARRAY``, or how many arrays a tuple or list has.
    writes : iterable of int
        Which of the arrays, one after the other, are written.
    """
    # JAX caches compiled programs by their text, so equal calls must give the same text.
    written = [
        _value_text(value) if kind == VALUE else None
        for value, kind in zip(values, arrays, strict=True)
    ]
    return json.dumps(
        {
            "function": _name_of(function),
            "values": written,
            "arrays": list(arrays),
            "writes": list(writes),
        },
        separators=(",", ":"),
    )


def resolve(
    text: str,
) -> tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    """Read the text of a call.

    Returns
    -------
    tuple
        The function, a value for each parameter, the names of the last ones where they are given by
        name, and the arrays and writes as :func:`call_text` had them.

    Raises
    ------
    RuntimeError
        If the program was made in another process, and this process does not have its function.
    """
    call = json.loads(text)
    function = _function_of(call["function"])
    parameters = function.declaration.parameters
    values, arrays = call["values"], call["arrays"]
    if not len(values) == len(arrays) == len(parameters):
        raise RuntimeError(
            f"the program calls {call['function']} with {counted(len(values), 'argument')}, but "
            "it has "
            f"{counted(len(parameters), 'parameter')}: the program was made for another version "
            "of it"
        )
    return (
        function,
        tuple(None if one is None else _read(one) for one in values),
        function.declaration.keyword_only,
        tuple(arrays),
        tuple(call["writes"]),
    )


def _value_text(value: Any) -> Any:
    kind = type(value)
    if value is None:
        return None
    if kind is float:
        # Hexadecimal digits lose no precision, and JSON has neither infinity nor NaN.
        return ["float", value.hex()]
    if kind in (bool, int, str):
        return [kind.__name__, value]
    if isinstance(value, DType):
        return ["dtype", value.name]
    return ["object", _number_of(value)]


def _read(written: Any) -> Any:
    kind, value = written
    if kind == "float":
        return float.fromhex(value)
    if kind == "dtype":
        return as_dtype(value)
    if kind == "object":
        return _object(value, "an argument that cannot be written as text")
    return value


def _name_of(function: Any) -> str:
    """Return module:name if others can find it by that, else a number in this process."""
    name = f"{function.__module__}:{function.__qualname__}"
    # The name is valid only if it leads back to this function. The function may be local to another
    # function, or its name may now have another value.
    return name if _import_by_name(name) is function else f"#{_number_of(function)}"


def _function_of(name: str) -> Any:
    if name.startswith("#"):
        return _object(int(name[1:]), "a function that cannot be found by its module and name")
    found = _import_by_name(name)
    if not isinstance(found, CoreFunction):
        raise RuntimeError(
            f"the program calls the function {name}, which is not loaded: import the module "
            f"{name.partition(':')[0]} first"
        )
    return found


def _import_by_name(name: str) -> Any:
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def _number_of(value: Any) -> int:
    with _lock:
        number = _numbers.get(id(value))
        if number is None:
            number = next(_count)
            _known[number] = value
            _numbers[id(value)] = number
        return number


def _object(number: int, what: str) -> Any:
    if number not in _known:
        raise RuntimeError(
            f"the program contains {what}, and was made in another process: define the function "
            "at the top level of a module, and pass only numbers, strs, bools, None and element "
            "types"
        )
    return _known[number]
