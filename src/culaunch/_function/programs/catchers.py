"""Whether the code around an operation can catch its exception."""

from __future__ import annotations

import dis
import functools
import sys
from typing import TYPE_CHECKING

from culaunch._base.places import is_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType
    from typing import Any, TypeVar

    Body = TypeVar("Body", bound=Callable[..., Any])

# The code that runs a body. Handlers outside it belong to the caller.
_BOUNDARIES: set[CodeType] = set()


def boundary(function: Body) -> Body:
    """Mark the function that runs a body."""
    _BOUNDARIES.add(function.__code__)
    return function


def may_be_caught() -> bool:
    """Tell whether a frame between here and the start of the body may catch an exception.

    True if this cannot be excluded. The operation is then a branch, which is always correct.
    """
    return any(catches(frame.f_code, frame.f_lasti) for frame in frames_of_body())


def frames_of_body() -> Iterator[FrameType]:
    """Yield the frames between here and the start of the body, except culaunch's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code not in _BOUNDARIES:
        if not is_ours(frame):
            yield frame
        frame = frame.f_back


@functools.lru_cache(maxsize=4096)
def catches(code: CodeType, offset: int) -> bool:
    """Tell whether code may catch an exception of its instruction at an offset."""
    # Python's C code calls these, and interprets some errors: an IndexError from __getitem__ ends a
    # loop.
    if code.co_name.startswith("__") and code.co_name.endswith("__"):
        return True
    table = getattr(code, "co_exceptiontable", None)
    if table is None:  # before Python 3.11
        return any(one.opname.startswith("SETUP_") for one in dis.get_instructions(code))
    return _is_handled(code, table, target_of(table, offset))


def _entries(table: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and target of each entry of an exception table, as offsets."""
    # Objects/exception_handling_notes.txt of CPython: each entry has four numbers. Each byte has
    # six bits of a number, and one bit that says whether another byte follows.
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(2 * value)
            value = 0
    for start, size, target, _ in zip(*[iter(numbers)] * 4, strict=True):
        yield start, start + size, target


def target_of(table: bytes, offset: int) -> int | None:
    """Return the target of an exception raised at an offset; None if it leaves the code."""
    for start, end, target in _entries(table):
        if start <= offset < end:
            return target
    return None


def _is_handled(code: CodeType, table: bytes, target: int | None) -> bool:
    """Tell whether a handler may end without raising the same exception again, unlike finally."""
    steps = [one for one in dis.get_instructions(code) if one.opname != "CACHE"]
    places = {one.offset: at for at, one in enumerate(steps)}
    waiting, seen = [target], set()
    while waiting:
        offset = waiting.pop()
        if offset is None or offset in seen:
            continue
        seen.add(offset)
        at = places[offset]
        name, following = steps[at].opname, steps[at + 1 : at + 2]
        # The interpreter's own handlers restore the previous state and raise again.
        if name == "POP_EXCEPT" and following[0].opname == "RERAISE":
            name = ""
        if name in _CATCHING:
            return True
        if name == "RERAISE":
            waiting.append(target_of(table, offset))
            continue
        if steps[at].opcode in dis.hasjrel or steps[at].opcode in dis.hasjabs:
            waiting.append(steps[at].argval)
        if name not in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"):
            waiting += [one.offset for one in following]
    return False


_CATCHING = frozenset((
    "CHECK_EXC_MATCH", "CHECK_EG_MATCH", "WITH_EXCEPT_START", "POP_EXCEPT", "RETURN_VALUE",
    "RETURN_CONST", "RAISE_VARARGS",
))  # fmt: skip
