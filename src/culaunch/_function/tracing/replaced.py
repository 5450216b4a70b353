"""The replacements of Python's own functions of numbers in a traced body."""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
import operator
import types
from typing import TYPE_CHECKING, Any

from culaunch._function.arrays.array import StandIn
from culaunch._function.arrays.identity import STANDS_FOR, is_same
from culaunch._function.body.driver_handlers import Suppress
from culaunch._function.programs.opcodes import MATH_FUNCTIONS
from culaunch._function.symbolic.arithmetic import as_float, as_int, to_int
from culaunch._function.symbolic.instructions import classify, extreme, math_function
from culaunch._function.symbolic.numbers import SymBool, SymFloat, SymInt
from culaunch._function.symbolic.symbols import is_symbolic, plain
from culaunch._function.tracing.answering import Builtins

if TYPE_CHECKING:
    from collections.abc import Callable


class _Number(type):
    """The type of ``int``, ``float`` and ``bool`` in a body. isinstance and calls work on all."""

    _plain: Any
    _convert: Callable[[Any], Any]

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        # ``int(x)`` of a traced float is an instruction. For other values, it is unchanged.
        if len(args) == 1 and not keywords and is_symbolic(args[0]):
            return cls._convert(args[0])
        return cls._plain(*args, **keywords)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls._plain)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls._plain)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._plain, name)

    def __eq__(cls, other: object) -> bool:
        # A stand-in cannot answer ``type(n) is int``, but it can answer ``==`` and ``in``.
        return other is cls or other is cls._plain or other in _SYMBOLIC.get(cls._plain, ())

    def __hash__(cls) -> int:
        return hash(cls._plain)

    def __or__(cls, other: Any) -> Any:
        return cls._plain | other

    def __ror__(cls, other: Any) -> Any:
        return other | cls._plain

    def __repr__(cls) -> str:
        return repr(cls._plain)


_SYMBOLIC = {int: (SymInt,), float: (SymFloat,), bool: (SymBool,)}


def _to_int(value: Any) -> Any:
    return to_int("TRUNC", value) if type(value) is SymFloat else as_int(value)


# As subclasses, they match like Python's own: ``case int(n):`` binds the value itself.
Int = _Number("int", (int,), {"_plain": int, "_convert": staticmethod(_to_int)})
Float = _Number("float", (float,), {"_plain": float, "_convert": staticmethod(as_float)})
for _kind in (Int, Float):
    STANDS_FOR[id(_kind)] = _kind._plain
# A body has its own int and float. Other code has Python's.
_IN_BODY = {SymInt: Int, SymFloat: Float, SymBool: bool}
ELSEWHERE = {SymInt: int, SymFloat: float, SymBool: bool}


def _extreme(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def of(*args: Any, **keywords: Any) -> Any:
        if keywords:
            return function(*args, **keywords)
        values = tuple(args[0]) if len(args) == 1 else args
        if not values or not any(map(is_symbolic, values)):
            return function(values)
        if any(isinstance(one, bool) for one in values):  # the result may be a bool or a number
            return function(values)
        # Use an instruction each, and no branch, because grid code uses min and max everywhere.
        return functools.reduce(lambda x, y: extreme(name, x, y), values)

    return of


def _len(value: Any) -> Any:
    """Return the length. For an array, this is its first size."""
    return value.shape[0] if isinstance(value, StandIn) and value.shape else len(value)


def _rounding(name: str, function: Callable[[Any], int]) -> Callable[[Any], Any]:
    @functools.wraps(function)
    def of(value: Any) -> Any:
        return to_int(name, value) if type(value) is SymFloat else function(value)

    return of


def _math(name: str) -> Callable[..., Any]:
    function = getattr(math, name)

    @functools.wraps(function)
    def of(*args: Any, **keywords: Any) -> Any:
        if keywords or not any(map(is_symbolic, args)):
            return function(*args, **keywords)
        if name == "log" and len(args) == 2:
            return math_function("log", args[0]) / math_function("log", args[1])
        if name == "hypot" and len(args) != 2:
            return function(*map(plain, args))
        return math_function(name, *args)

    return of


def _prod(values: Any, *, start: Any = 1) -> Any:
    for value in values:
        start = start * value
    return start


def _isclass(name: str) -> Callable[[Any], Any]:
    function = getattr(math, name)

    return functools.wraps(function)(lambda value: classify(name.upper(), value))


def _of_math() -> dict[str, Any]:
    """Return the functions of ``math`` that are instructions."""
    table: dict[str, Any] = {name: _math(name) for name in MATH_FUNCTIONS if hasattr(math, name)}
    for name in ("floor", "ceil", "trunc"):
        table[name] = _rounding(name.upper(), getattr(math, name))
    table["prod"] = _prod
    for name in ("isnan", "isinf", "isfinite"):
        table[name] = _isclass(name)
    return table


class _Module(types.ModuleType):
    """A module in which some functions are replaced."""

    def __init__(self, module: types.ModuleType, replaced: dict[str, Any]) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module = module
        vars(self).update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


_MODULES = {
    contextlib: {"suppress": Suppress},
    math: _of_math(),
    operator: {"is_": is_same, "is_not": lambda x, y: not is_same(x, y)},
}

_REPLACED_MODULES = {one: _Module(one, replaced) for one, replaced in _MODULES.items()}
BUILTINS = Builtins(vars(builtins), types=_IN_BODY, modules=_REPLACED_MODULES)
BUILTINS.update(int=Int, float=Float, min=_extreme("MIN", min), max=_extreme("MAX", max), len=_len)
# The replacement of an object in a global or a closure, by the object's identity.
_BY_IDENTITY: dict[int, Any] = {
    id(getattr(builtins, name)): value for name, value in BUILTINS.items() if name != "__import__"
}
for _module, _replaced in _MODULES.items():
    _BY_IDENTITY[id(_module)] = _REPLACED_MODULES[_module]
    _BY_IDENTITY.update(
        (id(getattr(_module, name)), value)
        for name, value in _replaced.items()
        if hasattr(_module, name)
    )


def replacement(value: object) -> Any:
    """Return a body's replacement for one of Python's functions of numbers, or None."""
    return _BY_IDENTITY.get(id(value))
