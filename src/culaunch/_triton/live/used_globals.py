"""The globals that a Triton kernel was compiled with."""

from __future__ import annotations

import enum
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culaunch._triton.reads.reads import Guard


# Objects that cannot change in place, or are treated that way; functions are equal only to
# themselves.
_FIXED = (
    int, float, complex, str, bytes, range, type, enum.Enum, type(None), type(...),
    types.FunctionType, types.BuiltinFunctionType,
)  # fmt: skip
_FIXED_NAMES = {("torch", "dtype"), ("triton.language.core", "dtype")}


def global_guards(function: Any) -> tuple[list[Guard], list[str]]:
    """Return the values of the globals that a JIT function uses.

    Returns
    -------
    (list of Guard, list of str)
        The values that must not change, and the names of globals that may change in place. A guard
        does not notice such changes. Therefore every call compares these globals with their
        recorded values, as Triton does.
    """
    entries: list[Guard] = []
    unnoticed = []
    for (name, _), (_, namespace) in function.used_global_vals.items():
        found = namespace.get(name)
        entries.append((namespace, name, name in namespace, found))
        if not _guard_contents(found, entries):
            unnoticed.append(name)
    return entries, unnoticed


def _guard_contents(value: Any, entries: list[Guard]) -> bool:
    """Guard the parts of a value; return whether that detects every change."""
    if isinstance(value, _FIXED):
        return True
    if type(value) in (tuple, frozenset):
        return all(_guard_contents(item, entries) for item in value)
    kind = type(value)
    if kind.__name__ == "constexpr" and "value" in vars(value):
        entries.append((vars(value), "value", True, value.value))
        return _guard_contents(value.value, entries)
    return (kind.__module__, kind.__name__) in _FIXED_NAMES


def has_changed_global(function: Any) -> bool:
    """Whether a global that a JIT function uses has changed since compilation."""
    # A deleted global has also changed: a unique object represents it.
    missing = object()
    return any(
        namespace.get(name, missing) != value
        for (name, _), (value, namespace) in function.used_global_vals.items()
    )
