"""The results of a program: from words to nested tuples, like a traced body's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.places import Place
from culaunch._function import opcodes as oc
from culaunch._function.effects import Constant, Return, View
from culaunch._function.record import Register

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._ship.plan import Block, Plan


def read_result(words: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the value of a RETURN: its kind, and what it consists of.

    Constants and the keys of dicts stay numbers.
    """
    # In reverse order, to pop each word off the end of a list.
    return _value(list(reversed(words)))


def effects_of(block: Block, constant: Callable[[int], Any]) -> tuple[Any, ...]:
    """Return the views of a block and its end, as a traced body has them."""
    found: list[Any] = []
    for number, words in block.effects:
        if number == oc.VIEW:
            array, source, offset, dtype, _, *_ = words
            found.append(View(array, source, Register(offset), dtype, Place("", 0), (), ()))
    value = _with_constants(read_result(block.effects[-1][1]), constant)
    return (*found, Return(value))


def with_constants(
    words: tuple[int, ...], constant: Callable[[int], Any], texts: tuple[str, ...]
) -> tuple[Any, ...]:
    """Return the value of a RETURN with its constants, and with the keys of dicts as texts."""

    def named(value: tuple[Any, ...]) -> tuple[Any, ...]:
        kind, *rest = value
        if kind == oc.V_DICT:
            return kind, tuple((texts[key], named(one)) for key, one in rest[0])
        if kind in (oc.V_TUPLE, oc.V_LIST, oc.V_MADE):
            return (kind, *rest[:-1], tuple(map(named, rest[-1])))
        return value

    return _with_constants(named(read_result(words)), constant)


def _with_constants(value: tuple[Any, ...], constant: Callable[[int], Any]) -> tuple[Any, ...]:
    kind, *rest = value
    if kind == oc.V_CONSTANT:
        return kind, Constant(constant(rest[0]))
    if kind == oc.V_DICT:
        return kind, tuple((key, _with_constants(one, constant)) for key, one in rest[0])
    if kind in (oc.V_TUPLE, oc.V_LIST, oc.V_MADE):
        items = tuple(_with_constants(one, constant) for one in rest[-1])
        return (kind, items) if kind != oc.V_MADE else (kind, Constant(constant(rest[0])), items)
    return value


def raises(plan: Plan, block: Block) -> bool:
    """Tell whether a block always ends in an error: it checks a condition that is never true."""
    for step in block.steps:
        if step.op.name == "CHECK":
            condition = plan.definitions[step.words[0]]
            if condition.op.name == "CONST_B" and condition.words[1] == 0:
                return True
    return False


def _value(words: list[int]) -> tuple[Any, ...]:
    """Take a value off the end of the words, which are in reverse."""
    kind = words.pop()
    if kind == oc.V_NONE:
        return (kind,)
    if kind == oc.V_ELEMENT:
        return kind, words.pop(), words.pop()
    if kind < oc.V_TUPLE:
        return kind, words.pop()
    maker = (words.pop(),) if kind == oc.V_MADE else ()
    count = words.pop()
    if kind == oc.V_DICT:
        return kind, tuple((words.pop(), _value(words)) for _ in range(count))
    return (kind, *maker, tuple(_value(words) for _ in range(count)))
