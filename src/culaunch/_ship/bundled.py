"""The functions that a program traced, written when it ends: what ``culaunch bundle`` packs."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any

from culaunch._base.outputs import write_output
from culaunch._errors import CulaunchError
from culaunch._function import Function
from culaunch._library import SUFFIX
from culaunch._ship.save import saved_bytes

if TYPE_CHECKING:
    from collections.abc import Callable


def write_traced(folder: str) -> None:
    """Write the functions of this process to a library in a directory, under a name of its own.

    One that no library can hold is left out, and standard error says why. No failure is raised: the
    program is at its end, and what it did was right.
    """
    kept: list[Function[Any, Any]] = []
    for function in _traced():
        given = [*kept, *_with_gradient(function)]
        try:
            saved_bytes(given)
        except (CulaunchError, TypeError, ValueError) as error:
            _say(f"{function.__name__} is left out: {error}")
        else:
            kept = given
    if not kept:
        return
    path = os.path.join(folder, f"{os.getpid()}-{os.urandom(8).hex()}{SUFFIX}")
    try:
        write_output(path, saved_bytes(kept))
    except OSError as error:
        _say(f"no function is kept in {folder}: {error.strerror or error}")


def _traced() -> list[Function[Any, Any]]:
    """Return all functions that were called, or specialized, in the order in which they are named.

    Nothing keeps a list of them, for they may come and go; at the end of the program the collector
    knows those that are left.
    """
    found = [one for one in gc.get_objects() if isinstance(one, Function) and _has_kinds(one)]
    return sorted(found, key=lambda one: (one.__name__, one.__module__))


def _has_kinds(function: Function[Any, Any]) -> bool:
    try:
        return bool(function.traced())
    except (CulaunchError, TypeError, ValueError):
        return False


def _with_gradient(function: Function[Any, Any]) -> list[Any]:
    gradient: Any = function._gradient  # noqa: SLF001 - users see backward() alone
    used: Callable[..., Any] | None = getattr(gradient, "function", None)
    return [function, used] if isinstance(used, Function) else [function]


def _say(message: str) -> None:
    print(f"culaunch bundle: {message}", file=sys.stderr)  # noqa: T201
