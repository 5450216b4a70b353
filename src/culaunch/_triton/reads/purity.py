"""Objects that always give the same result for the same arguments: constants and pure functions."""

from __future__ import annotations

import math
import sys
import types
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from typing import Any

_UNUSUAL = CO_ASYNC_GENERATOR | CO_COROUTINE | CO_GENERATOR | CO_VARARGS | CO_VARKEYWORDS
_BUILTINS = (
    abs, all, any, bool, divmod, float, int, isinstance, len, max, min, pow, range, round, str, sum,
    tuple,
)  # fmt: skip
_PLAIN = (bool, int, float, str, bytes, type(None))


class Unknown(Exception):  # noqa: N818 - no error: the function is called
    """The reason why a function has to be called."""


def plain_code(function: Any) -> types.CodeType:
    """Return the code of a function without special features."""
    if not isinstance(function, types.FunctionType):
        raise Unknown(f"it is not a function but of type {type(function).__name__}")
    code = function.__code__
    if code.co_flags & _UNUSUAL:
        raise Unknown(f"{function.__qualname__} is not a plain function")
    # From CPython 3.11 on, handlers are in a table without instructions. Before, SETUP_FINALLY is
    # not among the harmless instructions.
    if getattr(code, "co_exceptiontable", b""):
        raise Unknown(f"{function.__qualname__} catches exceptions")
    return code


def is_constant(value: object) -> bool:
    """Whether neither an object nor any of its queried attributes ever changes."""
    kind = type(value)
    if kind is tuple:
        return all(is_constant(item) for item in value)  # type: ignore[attr-defined]
    name = (kind.__module__, kind.__qualname__)
    # Compare names, because torch and Triton may not be installed.
    return kind in _PLAIN or name in (("torch", "dtype"), ("triton.language.core", "dtype"))


def is_plain_class(found: object) -> bool:
    """Whether it is a class whose `isinstance` check is the default one."""
    return isinstance(found, type) and type(found).__instancecheck__ is type.__instancecheck__


def is_pure(found: object) -> bool:
    """Whether it is a function that is known to depend only on its arguments."""
    if any(found is one for one in _BUILTINS):
        return True
    if isinstance(found, types.BuiltinFunctionType) and found.__module__ == math.__name__:
        return True
    # Other code may set `__module__`, so it does not prove that the function is Triton's.
    triton = sys.modules.get("triton")
    return getattr(found, "__module__", None) == "triton" and any(
        found is getattr(triton, name, None) for name in ("cdiv", "next_power_of_2")
    )
