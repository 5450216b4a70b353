"""``Expression``: arithmetic over a kernel's arguments, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._triton.expressions.arithmetic import APPLY, ExpressionError

if TYPE_CHECKING:
    from collections.abc import Iterator

# The queries of an array's shape: one dimension (from the end if negative), or the whole shape.
SHAPES = ("size", "stride", "rank", "count")
DIMENSIONED = ("size", "stride")
# The queries for one argument: its value, whether it is None or an array, its element type, its
# shape.
LEAVES = ("value", "is_none", "is_array", "dtype", *SHAPES)
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_OF_ANYTHING = frozenset({"==", "!=", "not", "bool"})
_TRUTHS = ("is_none", "is_array", "not", "bool")
_INFIX = frozenset({*_COMPARISONS, "+", "-", "*", "/", "//", "%", "<<", ">>", "&", "|", "^"})


@dataclass(frozen=True)
class Expression:
    """A constant, a query of an argument, or an operation on expressions."""

    op: str
    """``"constant"``, one of `LEAVES`, ``"error"``, ``"if"``, or an operation of `APPLY`."""
    operands: tuple[Any, ...]
    """For a constant, its value. For a leaf, the argument's name, and a dimension if needed. For an
    error, its text. For an operation, expressions."""

    @property
    def is_constant(self) -> bool:
        """Whether it is a value."""
        return self.op == "constant"

    @property
    def value(self) -> Any:
        """The value of a constant."""
        return self.operands[0]

    def __str__(self) -> str:
        if self.op == "constant":
            return f"{self.value!r:.60}" if isinstance(self.value, str) else f"{self.value!s:.60}"
        if self.op == "value":
            return str(self.operands[0])
        if self.op == "is_none":
            return f"({self.operands[0]} is None)"
        if self.op == "is_array":
            return f"({self.operands[0]} is an array)"
        if self.op == "dtype":
            return f"{self.operands[0]}.dtype"
        if self.op in SHAPES:
            text = {
                "size": "shape[{1}]",
                "stride": "stride({1})",
                "rank": "ndim",
                "count": "numel()",
            }
            return ("{0}." + text[self.op]).format(*self.operands)
        if self.op == "error":
            return f"error({self.operands[0]!r:.80})"
        if self.op == "if":
            condition, chosen, other = self.operands
            return f"({chosen} if {condition} else {other})"
        if self.op in _INFIX:
            return f"({self.operands[0]} {self.op} {self.operands[1]})"
        prefix = {"neg": "-", "invert": "~", "not": "not "}.get(self.op)
        if prefix is not None:
            return f"({prefix}{self.operands[0]})"
        return f"{self.op}({', '.join(map(str, self.operands))})"


def constant(value: Any) -> Expression:
    """Make the expression of a value."""
    return Expression("constant", (value,))


def make(op: str, *operands: Expression) -> Expression:
    """Make an operation. An operation on constants becomes a constant at once."""
    if op == "if":
        return _choice(*operands)
    if op == "bool" and is_boolean(operands[0]):
        return operands[0]
    if op == "not" and operands[0].op == "not" and is_boolean(operands[0].operands[0]):
        return operands[0].operands[0]  # type: ignore[no-any-return]
    # An error propagates: a result computed from it has no value either.
    for one in operands:
        if one.op == "error":
            return one
        if one.is_constant and op not in _OF_ANYTHING and not isinstance(one.value, (int, float)):
            return Expression("error", (f"{one} is not a number",))
    if all(one.is_constant for one in operands):
        try:
            return constant(APPLY[op](*(one.value for one in operands)))
        except ExpressionError:
            pass  # evaluation reports it
    return Expression(op, operands)


def _choice(condition: Expression, chosen: Expression, other: Expression) -> Expression:
    if condition.op == "bool":
        condition = condition.operands[0]
    if condition.op == "error":
        return condition
    if condition.is_constant:
        return chosen if condition.value else other
    # The operand that `and` and `or` return is then known.
    truth = make("bool", condition)
    chosen = constant(True) if same(chosen, truth) else chosen
    other = constant(False) if same(other, truth) else other
    if same(chosen, other):
        return chosen
    if same(chosen, constant(True)) and same(other, constant(False)):
        return make("bool", condition)
    if same(chosen, constant(False)) and same(other, constant(True)):
        return make("not", condition)
    return Expression("if", (condition, chosen, other))


def same(one: Expression, other: Expression) -> bool:
    """Whether two expressions are equal, including types: `True`, `1` and `1.0` differ."""
    return repr(one) == repr(other)


def is_boolean(expression: Expression) -> bool:
    """Whether an expression is True or False for any arguments."""
    if expression.is_constant:
        return isinstance(expression.value, bool)
    if expression.op == "if":
        return all(is_boolean(one) or one.op == "error" for one in expression.operands[1:])
    return expression.op in _COMPARISONS or expression.op in _TRUTHS


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all parts of it."""
    yield expression
    for one in expression.operands:
        if isinstance(one, Expression):
            yield from walk(one)


def names_of(expression: Expression, *ops: str) -> set[str]:
    """Return the arguments that an expression reads, through one of `ops` or through any query."""
    return {one.operands[0] for one in walk(expression) if one.op in (ops or LEAVES)}
