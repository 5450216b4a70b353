"""Texts that a body makes from numbers: the tokens of the numbers, and the uses of the texts."""

from __future__ import annotations

import dis
import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType


# A character of the private use area represents a number in a text.
_OPEN, _CLOSE = "\ue000", "\ue001"


def as_token(register: int, spec: str) -> str:
    """Return the token for the number of a register."""
    return f"{_OPEN}{int(register)}:{spec}{_CLOSE}"


def has_token(text: str) -> bool:
    """Tell whether a text contains a token, directly or as repr() writes it."""
    return _OPEN in text or ascii(_OPEN)[1:-1] in text


def split(message: str) -> tuple[str, tuple[int, ...]]:
    """Return a message with ``{0}`` for its tokens, and the tokens' registers."""
    if _OPEN not in message:
        return message.replace("{", "{{").replace("}", "}}"), ()
    registers: list[int] = []
    parts = []
    # Every other part is the text between the marks of a token.
    for index, part in enumerate(re.split(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}", message)):
        if index % 2 == 0:
            parts.append(part.replace("{", "{{").replace("}", "}}"))
            continue
        number, _, spec = part.partition(":")
        parts.append(f"{{{len(registers)}{':' if spec else ''}{spec}}}")
        registers.append(int(number))
    return "".join(parts), tuple(registers)


class Name(str):
    """A name that represents a number in a message."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return str(self)


@functools.lru_cache(maxsize=1024)
def call_at(code: CodeType, offset: int) -> int:
    """Return the offset of a call that an instruction makes.

    Python 3.11 splits a call into two instructions. After a few runs, the first one may make the
    whole call.
    """
    steps = [one for one in dis.get_instructions(code) if one.opname != "CACHE"]
    at = steps.index(_containing(steps, offset))
    return steps[at + 1].offset if steps[at].opname == "PRECALL" else steps[at].offset


@functools.lru_cache(maxsize=1024)
def goes_to(code: CodeType, made: int, call: int | None) -> bool:
    """Tell whether a text goes into a call and nowhere else.

    Parameters
    ----------
    code : CodeType
        Of the function that makes the text.
    made : int
        The offset of the instruction that makes it.
    call : int or None
        The offset of the call; None: any whose result is dropped, or raised.

    Returns
    -------
    bool
        False also if this cannot be seen. The text is treated as data then.
    """
    steps = [one for one in dis.get_instructions(code) if one.opname != "CACHE"]
    end = None if call is None else _containing(steps, call)
    return _follow(steps, steps.index(_containing(steps, made)) + 1, end, may_store=True)


def _containing(steps: list[dis.Instruction], offset: int) -> dis.Instruction:
    """Return the step at an offset, or the step whose inline cache is there."""
    return max((one for one in steps if one.offset <= offset), key=lambda one: one.offset)


def _follow(
    steps: list[dis.Instruction], at: int, call: dis.Instruction | None, *, may_store: bool
) -> bool:
    """Track the value that is on top of the stack before a step."""
    above = 0  # the number of values above it
    for step in steps[at:]:
        name = step.opname
        taken = _taken(step)
        if taken is None:
            return False
        if taken <= above:
            if step is call:  # the call has other arguments
                return False
            above += _effect(step)
            continue
        if name.startswith("CALL"):
            after = steps[steps.index(step) + 1 :][:1]
            is_dropped = bool(after) and after[0].opname in ("POP_TOP", "RAISE_VARARGS")
            return is_dropped if call is None else step is call
        if name == "STORE_FAST" and may_store:
            loads = [one for one in steps if _names(one, "LOAD_FAST", step.argval)]
            stores = [one for one in steps if _names(one, "STORE_FAST", step.argval)]
            if len(loads) != 1 or len(stores) != 1 or loads[0].argval != step.argval:
                return False
            return _follow(steps, steps.index(loads[0]) + 1, call, may_store=False)
        if name not in _JOINING:
            return False
        above = 0
    return False


def _taken(step: dis.Instruction) -> int | None:
    """Return how many values a step pops; None if it is not part of an expression."""
    name, count = step.opname, step.arg or 0
    if name in _TAKEN:
        return _TAKEN[name]
    if name.startswith(("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_SMALL_INT")):
        return 0
    if name.startswith("BUILD_"):
        return count if name in _JOINING or name == "BUILD_LIST" else None
    if name == "FORMAT_VALUE":
        return 2 if count & 4 else 1
    if name in ("CALL", "CALL_METHOD", "CALL_FUNCTION_KW"):
        return count + 2
    if name == "CALL_KW":
        return count + 3
    if name == "CALL_FUNCTION":
        return count + 1
    return None


def _effect(step: dis.Instruction) -> int:
    """Return the change of the stack's depth by a step."""
    if step.opname == "PRECALL":  # Python 3.11 counts the arguments here, which CALL takes
        return 0
    if step.opname == "CALL":
        return -1 - (step.arg or 0)
    arg = step.arg if step.opcode >= dis.HAVE_ARGUMENT else None
    return dis.stack_effect(step.opcode, arg, jump=False)


def _names(step: dis.Instruction, kind: str, variable: str) -> bool:
    if not step.opname.startswith(kind):
        return False
    # From Python 3.13 on, one instruction loads two variables.
    return variable in step.argval if type(step.argval) is tuple else step.argval == variable


_JOINING = frozenset((
    "BUILD_STRING", "BUILD_TUPLE", "BINARY_OP", "BINARY_ADD", "BINARY_MODULO", "FORMAT_VALUE",
    "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE",
))  # fmt: skip
_TAKEN = {
    "NOP": 0, "PRECALL": 0, "KW_NAMES": 0, "EXTENDED_ARG": 0, "RESUME": 0, "PUSH_NULL": 0,
    "NOT_TAKEN": 0, "LOAD_NAME": 0, "LOAD_ATTR": 1, "LOAD_METHOD": 1, "BINARY_OP": 2,
    "BINARY_ADD": 2, "BINARY_SUBTRACT": 2, "BINARY_MULTIPLY": 2, "BINARY_MODULO": 2,
    "BINARY_FLOOR_DIVIDE": 2, "BINARY_TRUE_DIVIDE": 2, "BINARY_SUBSCR": 2, "UNARY_NEGATIVE": 1,
    "UNARY_INVERT": 1, "UNARY_NOT": 1, "STORE_FAST": 1, "FORMAT_SIMPLE": 1, "CONVERT_VALUE": 1,
    "FORMAT_WITH_SPEC": 2, "COMPARE_OP": 2, "CONTAINS_OP": 2,
}  # fmt: skip
