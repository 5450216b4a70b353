"""Values in a manifest: arguments, values that select a program, and results. A closed set."""

from __future__ import annotations

import math
import re
from typing import Any

from culaunch._base.values import spell
from culaunch._launch.formats.dtype import BY_NAME, find_dtype

_DEEPEST = 16
_MOST_BYTES = 1 << 16
_MOST_ITEMS = 1 << 12
_INTS = range(-(1 << 63), 1 << 64)
_HEX = re.compile(r"([0-9a-f]{2})*")


def write_value(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON; raise TypeError if a library cannot hold it."""
    kind = type(value)
    if depth > _DEEPEST:
        raise TypeError(f"a tuple must not be nested more than {_DEEPEST} times")
    if value is None or kind is bool or kind is str:
        return value
    if kind is int and value in _INTS:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is complex:
        parts = (value.real, value.imag)
        return {"complex": [write_value(one) for one in parts]}
    if kind is bytes and len(value) <= _MOST_BYTES:
        return {"bytes": value.hex()}
    if kind is tuple and len(value) <= _MOST_ITEMS:
        return {"tuple": [write_value(one, depth + 1) for one in value]}
    dtype = None if isinstance(value, str) else find_dtype(value)
    if dtype is not None:
        return {"dtype": dtype.name}
    raise TypeError(
        f"a library cannot hold {spell(value)}: it holds None, bool, int (64 bits), float, "
        "complex, str, bytes, element types, and tuples of these"
    )


def read_value(data: Any, depth: int = 0) -> Any:
    """Read a value that :func:`write_value` wrote.

    Raise ValueError if it is nothing of the kind.
    """
    kind = type(data)
    if data is None or kind is bool or kind is str or (kind is int and data in _INTS):
        return data
    if kind is float and math.isfinite(data):
        return data
    if kind is not dict or len(data) != 1 or depth > _DEEPEST:
        raise ValueError(f"a value must be of a known form (got {data!r:.60})")
    ((word, inside),) = data.items()
    if word == "float" and inside in ("inf", "-inf", "nan"):
        return float(inside)
    if word == "complex" and type(inside) is list and len(inside) == 2:
        real, imaginary = (read_value(one, depth + 1) for one in inside)
        if type(real) is type(imaginary) is float:
            return complex(real, imaginary)
    is_short = type(inside) is str and len(inside) <= 2 * _MOST_BYTES
    if word == "bytes" and is_short and _HEX.fullmatch(inside):
        return bytes.fromhex(inside)
    if word == "tuple" and type(inside) is list and len(inside) <= _MOST_ITEMS:
        return tuple(read_value(one, depth + 1) for one in inside)
    if word == "dtype" and type(inside) is str and inside in BY_NAME:
        return BY_NAME[inside]
    raise ValueError(f"a value must be of a known form (got {data!r:.60})")


def settled(value: Any) -> Any:
    """Return a value for comparison: a framework's element type becomes culaunch's."""
    if type(value) is tuple:
        return tuple(settled(one) for one in value)
    dtype = None if isinstance(value, str) else find_dtype(value)
    return value if dtype is None else dtype
