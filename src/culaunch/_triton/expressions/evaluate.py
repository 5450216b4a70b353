"""Evaluate expressions: with all arguments, or with only some of them known."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from culaunch._triton.expressions.arithmetic import APPLY, ExpressionError
from culaunch._triton.expressions.tree import LEAVES, SHAPES, Expression, constant, make
from culaunch._triton.variants.constants import normal_constant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def evaluate(
    expression: Expression, values: Mapping[str, Any], type_of: Callable[[Any], Any]
) -> Any:
    """Return the value of an expression.

    Parameters
    ----------
    expression : Expression
    values : mapping
        The arguments by name.
    type_of : callable
        Returns the element type of an array, in the form of expressions.

    Raises
    ------
    ExpressionError
        If an argument is missing or is not a number, or a number is too large.
    """
    op, operands = expression.op, expression.operands
    if op == "constant":
        return operands[0]
    if op == "error":
        raise ExpressionError(operands[0])
    if op in LEAVES:
        name = operands[0]
        if name not in values:
            raise ExpressionError(f"{name} has no value")
        value = values[name]
        if op == "is_none":
            return value is None
        if op == "is_array":
            return is_array(value)
        if op in SHAPES:
            return _of_shape(op, name, value, *operands[1:])
        return _plain(name, value) if op == "value" else type_of(value)
    if op == "if":
        condition, chosen, other = operands
        # Evaluate only the taken branch, because the other may have no value for these arguments.
        is_true = evaluate(condition, values, type_of)
        return evaluate(chosen if is_true else other, values, type_of)
    return APPLY[op](*(evaluate(one, values, type_of) for one in operands))


def partly(expression: Expression, known: Callable[[str, str], Any]) -> Expression:
    """Insert the known values; the result is a constant if possible.

    Parameters
    ----------
    expression : Expression
    known : callable
        ``known(op, name)`` returns the value of a leaf as an `Expression`, or None.
    """
    op, operands = expression.op, expression.operands
    if op in ("constant", "error"):
        return expression
    if op in LEAVES:
        found = known(op, operands[0]) if op not in SHAPES else None
        return expression if found is None else found
    if op == "if":
        # A known condition selects one branch, and drops an error in the other.
        condition = partly(operands[0], known)
        if condition.is_constant:
            return partly(operands[1] if condition.value else operands[2], known)
        return make("if", condition, partly(operands[1], known), partly(operands[2], known))
    return make(op, *(partly(one, known) for one in operands))


def known_values(values: Mapping[str, Any]) -> Callable[[str, str], Expression | None]:
    """Return the known values, given that some arguments are constants."""

    def known(op: str, name: str) -> Expression | None:
        return known_leaf(op, values[name]) if name in values else None

    return known


def known_leaf(op: str, value: Any) -> Expression | None:
    """Return the value of a leaf for an argument that is a constant."""
    if op == "dtype":
        return None
    if op == "is_array":
        return constant(False)
    return constant(value is None if op == "is_none" else normal_constant(value))


def is_array(value: Any) -> bool:
    """Whether an argument is an array of any library."""
    return any(
        hasattr(value, one) for one in ("__dlpack__", "__cuda_array_interface__", "data_ptr")
    )


def _of_shape(op: str, name: str, array: Any, dimension: int = 0) -> int:
    """Return a part of an array's shape, or of its strides in elements."""
    try:
        shape = tuple(map(operator.index, array.shape))
        if op == "size":
            return shape[dimension]
        if op == "rank":
            return len(shape)
        if op == "count":
            return math.prod(shape)
        if callable(array.stride if hasattr(array, "stride") else None):
            return operator.index(array.stride(dimension))
        return operator.index(array.strides[dimension]) // operator.index(array.itemsize)
    except IndexError:
        raise ExpressionError(f"{name} has no dimension {dimension}") from None
    except (AttributeError, TypeError):
        kind = type(array).__qualname__
        raise ExpressionError(f"{name} is a {kind}, whose {op} cannot be read") from None


def _plain(name: str, value: Any) -> Any:
    """Return an argument as an expression's value: a number, a str, None, an element type."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    kinds = {(one.__module__, one.__name__) for one in type(value).__mro__}
    try:
        return normal_constant(value.item() if ("numpy", "generic") in kinds else value)
    except (TypeError, ValueError):
        raise ExpressionError(f"{name} is a {type(value).__qualname__}, not a number") from None
