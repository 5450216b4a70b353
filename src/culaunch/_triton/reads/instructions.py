"""The instructions of a function, in order. A pattern is valid only if no jump goes into it."""

from __future__ import annotations

import dis
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import types

_SKIPPED = {"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "NOT_TAKEN", "RESUME"}


class Instructions:
    """All of a code's instructions from first to last, regardless of jumps.

    The next call may take a branch that this one does not.
    """

    def __init__(self, code: types.CodeType) -> None:
        self._all: list[dis.Instruction] = []
        self._targets: set[int] = set()  # by the position of an instruction
        is_target = False
        for one in dis.get_instructions(code):
            is_target = is_target or one.is_jump_target
            if one.opname in _SKIPPED:
                continue
            if is_target:
                self._targets.add(len(self._all))
            self._all.append(one)
            is_target = False
        self._at = 0

    def next(self) -> dis.Instruction | None:
        """Take the next one; None at the end."""
        if self._at == len(self._all):
            return None
        self._at += 1
        return self._all[self._at - 1]

    def take(self, count: int) -> None:
        """Take instructions that were looked at."""
        self._at += count

    def ahead(self, count: int) -> list[dis.Instruction]:
        """Return up to a number of following instructions, up to the next target of a jump.

        That instruction may be reached another way, with other objects on the stack.
        """
        found = self._all[self._at : self._at + count]
        for i in range(len(found)):
            if self._at + i in self._targets:
                return found[:i]
        return found

    def before(self, count: int) -> dis.Instruction | None:
        """Return the instruction some places before the last one, if no jump lies between."""
        at = self._at - 1 - count
        if at < 0 or any(at < one < self._at for one in self._targets):
            return None
        return self._all[at]


def is_subscript(one: dis.Instruction) -> bool:
    """Whether it is ``container[item]``."""
    return one.opname == "BINARY_SUBSCR" or (one.opname, one.argrepr) == ("BINARY_OP", "[]")


def is_call(one: dis.Instruction, count: int) -> bool:
    """Whether it calls the object below so many positional arguments."""
    if one.opname not in ("CALL", "CALL_METHOD", "CALL_FUNCTION"):
        return False
    return bool(one.argval == count)


def is_method(one: dis.Instruction) -> bool:
    """Whether it loads a method for a call with the arguments that follow."""
    # From CPython 3.12 on, it is an attribute load with a flag.
    return one.opname == "LOAD_METHOD" or (one.opname == "LOAD_ATTR" and "NULL|self" in one.argrepr)


def constant_of(one: dis.Instruction) -> tuple[Any] | None:
    """Return the constant that is loaded."""
    return (one.argval,) if one.opname in ("LOAD_CONST", "LOAD_SMALL_INT") else None
