"""The target of a custom call, as a text in XLA's program, and back."""

from __future__ import annotations

import itertools
import json
import sys
from typing import TYPE_CHECKING, Any

from culaunch._base.fork_lock import ForkLock
from culaunch._core import Function as CoreFunction
from culaunch._launch.formats.dtype import DType, as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# An object without a name that another process would know gets a number of this process.
_known: dict[int, Any] = {}
_numbers: dict[int, int] = {}  # id -> number; what is in _known does not go
_count = itertools.count(1)
_lock = ForkLock()

ARRAY = 0  # an argument of Target.arrays; n: a tuple of n, -1 - n: a list of n
VALUE = -1


def call_text(function: Any, values: Sequence[Any], arrays: Sequence[int], writes: Any) -> str:
    """Write down a call: the function, each argument that is no array, the arrays it writes.

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
    # JAX caches compiled programs by their text: a different text is compiled again, and equal
    # calls must give the same text.
    written = [
        _written(value) if kind == VALUE else None
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
        If the program was made in another process, and what it calls is not here.
    """
    call = json.loads(text)
    function = _function_of(call["function"])
    parameters = function.declaration.parameters
    values, arrays = call["values"], call["arrays"]
    if not len(values) == len(arrays) == len(parameters):
        raise RuntimeError(
            f"the program calls {call['function']} with {len(values)} arguments, and it has "
            f"{len(parameters)} parameters: the program was made for another version of it"
        )
    names = tuple(name for name, kind in parameters if kind == 2)
    return (
        function,
        tuple(None if one is None else _read(one) for one in values),
        names,
        tuple(arrays),
        tuple(call["writes"]),
    )


def _written(value: Any) -> Any:
    kind = type(value)
    if value is None:
        return None
    if kind is float:
        # In hexadecimal digits, since JSON has neither an infinity nor a NaN, and no digit is lost.
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
        return _object(value, "an argument that no text can say")
    return value


def _name_of(function: Any) -> str:
    """Return module:name, by which other processes find it, too; else a number of this one."""
    name = f"{function.__module__}:{function.__qualname__}"
    # The name counts only if it leads back to this very function. The function may be local to
    # another function, or its name may stand for something else now.
    return name if _found(name) is function else f"#{_number_of(function)}"


def _function_of(name: str) -> Any:
    if name.startswith("#"):
        return _object(int(name[1:]), "a function that no module has by its name")
    found = _found(name)
    if not isinstance(found, CoreFunction):
        raise RuntimeError(
            f"the program calls the function {name}, which is not loaded: import the module "
            f"{name.partition(':')[0]} first"
        )
    return found


def _found(name: str) -> Any:
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
            f"the program has {what}, and comes from another process: define the function at the "
            "top of a module, and pass numbers, texts, bools, None and element types"
        )
    return _known[number]
