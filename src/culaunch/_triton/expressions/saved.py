"""Expressions in a manifest: written, and read with nothing trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.expressions.arithmetic import ARITY
from culaunch._triton.expressions.tree import DIMENSIONED, LEAVES, Expression, walk
from culaunch._triton.variants.checks import check_identifier
from culaunch._triton.variants.constants import checked, decode, encode

if TYPE_CHECKING:
    from collections.abc import Collection

_DEEPEST = 60
_MOST = 1000  # operations of one expression
_LONGEST = 1000  # characters of an error's text
_DIMENSIONS = 64  # as many as DLPack's arrays can have


def write_expression(expression: Expression) -> Any:
    """Return an expression in the form for JSON: ``["//", ["value", "n"], 64]``."""
    if expression.is_constant:
        value = encode(expression.value)
        return value if _is_plain(value) else ["constant", value]
    if expression.op in (*LEAVES, "error"):
        return [expression.op, *expression.operands]
    return [expression.op, *(write_expression(one) for one in expression.operands)]


def read_expression(entry: Any, names: Collection[str]) -> Expression:
    """Read an expression that uses only these arguments.

    Raises
    ------
    TypeError, ValueError
        If it is invalid.
    """
    # The depth is limited while reading, and the size afterwards. The entry is already in memory,
    # and the JSON reader limits it.
    made = _read(entry, names, 0)
    if sum(1 for _ in walk(made)) > _MOST:
        raise ValueError(f"an expression has more than {_MOST} operations")
    return made


def check_size(expression: Expression) -> Expression:
    """Return an expression that a manifest may have.

    Raise ValueError if it is too large, or has a part that a file cannot hold.
    """
    return read_expression(write_expression(expression), _Everything())


def _read(entry: Any, names: Collection[str], depth: int) -> Expression:
    if _is_plain(entry):
        return Expression("constant", (entry,))
    if depth == _DEEPEST:
        raise ValueError("an expression is nested too deeply")
    op, *operands = checked(entry, list)
    checked(op, str)
    if op == "constant" and len(operands) == 1:
        return Expression(op, (decode(operands[0]),))
    if op == "error" and len(operands) == 1 and len(checked(operands[0], str)) <= _LONGEST:
        return Expression(op, (operands[0],))
    if op in LEAVES and len(operands) == (2 if op in DIMENSIONED else 1):
        name, *dimension = operands
        if check_identifier(name) not in names:
            raise ValueError(f"an expression reads {name!r:.60}, which is not available there")
        if not all(map(is_dimension, dimension)):
            raise ValueError(f"{dimension[0]!r:.60} is not a dimension")
        return Expression(op, (name, *dimension))
    if ARITY.get(op) != len(operands):
        raise ValueError(f"{op!r:.60} with {len(operands)} operands is not an operation")
    return Expression(op, tuple(_read(one, names, depth + 1) for one in operands))


def is_dimension(value: Any) -> bool:
    """Whether a value can be the number of a dimension."""
    return type(value) is int and -_DIMENSIONS <= value < _DIMENSIONS


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float)


class _Everything(frozenset[str]):
    """Every name."""

    def __contains__(self, _: object) -> bool:
        return True
