"""Arrays that a body compares by ``is``, which no stand-in can answer."""

from __future__ import annotations

import dis
import functools
from typing import TYPE_CHECKING, Any

from culaunch._base.places import Place
from culaunch._function.array import StandIn

if TYPE_CHECKING:
    from types import CodeType


def require_no_identity(code: CodeType, names: tuple[str, ...], values: list[Any]) -> None:
    """Refuse a body that asks whether two of its arrays are one.

    A call may pass one array twice, and each parameter has a stand-in of its own.

    Raises
    ------
    TypeError
        With the line.
    """
    arrays = {name for name, one in zip(names, values, strict=True) if isinstance(one, StandIn)}
    for first, second, line in _compared(code):
        if first in arrays and second in arrays and first != second:
            place = Place(code.co_filename, line)
            raise TypeError(
                f"at {place.text()}: {first} and {second} are compared by `is`, and arrays are "
                "stand-ins in a body: decide before the call, and pass a bool"
            )


@functools.lru_cache(maxsize=1024)
def _compared(code: CodeType) -> tuple[tuple[str, str, int], ...]:
    """Return the pairs of variables that code compares by ``is``, with the lines."""
    found, names, line = [], [""] * 2, code.co_firstlineno
    starts = {offset: number for offset, number in dis.findlinestarts(code) if number is not None}
    for step in dis.get_instructions(code):
        line = starts.get(step.offset, line)
        if step.opname.startswith("LOAD_FAST"):
            # Python 3.13 on loads two variables at once.
            loaded = step.argval if type(step.argval) is tuple else (step.argval,)
            names = [*names, *loaded][-2:]
            continue
        if step.opname == "IS_OP":
            found.append((names[0], names[1], line))
        if step.opname != "CACHE":
            names = [""] * 2
    return tuple(found)
