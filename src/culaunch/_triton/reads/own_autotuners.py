"""The inputs, besides the arguments, of the methods of a subclass of Triton's autotuner."""

from __future__ import annotations

import dis
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._triton.reads.reads import Guard

# The attributes that Triton's own run() sets.
_SET = {"bench_time", "best_config", "configs_timings", "do_bench", "nargs", "restore_copies"}


def globals_of(tuner: Any, base: type) -> Iterator[Guard]:
    """Yield the globals that they use, except packages, which are not replaced."""
    for code, namespace in _codes_of(tuner, base):
        for name in code.co_names:
            if name in namespace and not hasattr(namespace[name], "__path__"):
                yield namespace, name, True, namespace[name]


def attributes_of(tuner: Any, base: type) -> set[str]:
    """Return the object's attributes that they read but do not set."""
    read: set[str] = set()
    stored = set(_SET)
    for code, _ in _codes_of(tuner, base):
        read.update(code.co_names)
        stored.update(
            str(one.argval) for one in dis.get_instructions(code) if one.opname == "STORE_ATTR"
        )
    return (read & set(vars(tuner))) - stored


def _codes_of(tuner: Any, base: type) -> Iterator[tuple[types.CodeType, dict[str, Any]]]:
    for kind in type(tuner).__mro__:
        if kind is base:
            return
        for method in vars(kind).values():
            function = getattr(method, "__func__", getattr(method, "fget", method))
            if isinstance(function, types.FunctionType):
                for code in _with_inner(function.__code__):
                    yield code, function.__globals__


def _with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _with_inner(one)
