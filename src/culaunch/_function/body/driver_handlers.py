"""A body's handlers for driver errors, which occur only after the body has ended."""

from __future__ import annotations

import contextlib
import dis
import functools
import threading
from typing import TYPE_CHECKING, Any

from culaunch._errors import DriverError
from culaunch._function.programs.catchers import frames_of_body, target_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType


def caught_driver_error() -> type | None:
    """Return an exception that the body catches here and only the driver raises, if there is one.

    A wider handler, such as ``except Exception``, is useful in a body. A context manager is, too,
    unless it is :func:`contextlib.suppress`.
    """
    for frame in frames_of_body():
        for names in _handled(frame.f_code, frame.f_lasti):
            kind = _looked_up(frame, names)
            if _is_of_driver(kind):
                return kind  # type: ignore[no-any-return]
    return next((one for kinds in _suppressed() for one in kinds if _is_of_driver(one)), None)


class Suppress(contextlib.suppress):
    """``contextlib.suppress`` in a body, with the exceptions that it suppresses."""

    def __init__(self, *exceptions: type[BaseException]) -> None:
        super().__init__(*exceptions)
        self._kinds = exceptions

    def __enter__(self) -> None:
        _suppressed().append(self._kinds)

    def __exit__(self, *raised: Any) -> bool:
        _suppressed().pop()
        return bool(super().__exit__(*raised))


_local = threading.local()


def _suppressed() -> list[tuple[type, ...]]:
    found: list[tuple[type, ...]] | None = getattr(_local, "suppressed", None)
    if found is None:
        found = _local.suppressed = []
    return found


def _is_of_driver(kind: Any) -> bool:
    # PyTorch's out-of-memory error is a RuntimeError.
    return isinstance(kind, type) and (
        issubclass(kind, (DriverError, MemoryError)) or kind.__name__ == "OutOfMemoryError"
    )


def _looked_up(frame: FrameType, names: tuple[str, ...]) -> Any:
    """Return the value of a name and its attributes in a frame; None if it is unknown."""
    value: Any = None
    for space in (frame.f_locals, frame.f_globals, frame.f_builtins):
        if names[0] in space:
            value = space[names[0]]
            break
    for name in names[1:]:
        value = getattr(value, name, None)
    return value


@functools.lru_cache(maxsize=1024)
def _handled(code: CodeType, offset: int) -> tuple[tuple[str, ...], ...]:
    """Return the exceptions that handlers around an instruction name, as names with attributes."""
    steps = [one for one in dis.get_instructions(code) if one.opname not in _SILENT]
    places = {one.offset: at for at, one in enumerate(steps)}
    found: list[tuple[str, ...]] = []
    waiting, seen = [_handler(code, offset)], set()
    while waiting:
        target = waiting.pop()
        if target is None or target in seen:
            continue
        seen.add(target)
        at = places[target]
        step, following = steps[at], steps[at + 1 : at + 2]
        # A handler ends here. The code after it is not about this exception.
        if step.opname == "POP_EXCEPT" and following[0].opname != "RERAISE":
            continue
        if step.opname in _MATCHES:
            found += _loaded(steps[:at])
        if step.opname in ("RERAISE", "RAISE_VARARGS"):
            waiting.append(_handler(code, target))
            continue
        is_jump = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
        if is_jump and not step.opname.startswith("SETUP_"):
            waiting.append(step.argval)
        if step.opname not in _LEAVING:
            waiting += [one.offset for one in following]
    return tuple(found)


def _handler(code: CodeType, offset: int) -> int | None:
    """Return the target of an exception raised at an offset; None if it leaves the code."""
    table = getattr(code, "co_exceptiontable", None)
    if table is not None:
        return target_of(table, offset)
    # Before Python 3.11, an instruction before the block holds the offset of its handler.
    blocks = (one for one in dis.get_instructions(code) if one.opname == "SETUP_FINALLY")
    around = [one.argval for one in blocks if one.offset < offset < one.argval]
    return min(around, default=None)


def _loaded(steps: list[dis.Instruction]) -> Iterator[tuple[str, ...]]:
    """Yield the names that the last steps have loaded: one, or all names of a tuple."""
    count = 1
    if steps and steps[-1].opname == "BUILD_TUPLE":
        count, steps = steps[-1].arg or 0, steps[:-1]
    for _ in range(count):
        names: list[str] = []
        while steps and steps[-1].opname in ("LOAD_ATTR", "LOAD_METHOD"):
            names.insert(0, str(steps[-1].argval))
            steps = steps[:-1]
        last = steps[-1].argval if steps and steps[-1].opname.startswith("LOAD_") else None
        if type(last) is not str:
            return
        yield (last, *names)
        steps = steps[:-1]


_SILENT = frozenset(("CACHE", "NOT_TAKEN", "EXTENDED_ARG"))
_MATCHES = frozenset(("CHECK_EXC_MATCH", "JUMP_IF_NOT_EXC_MATCH"))
_LEAVING = frozenset((
    "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE", "RETURN_VALUE",
    "RETURN_CONST",
))  # fmt: skip
