"""Expressions over a kernel's arguments: the form in which heuristics and grids are saved."""

from culaunch._triton.expressions.arithmetic import ExpressionError
from culaunch._triton.expressions.evaluate import (
    evaluate,
    known_leaf,
    known_values,
    partly,
)
from culaunch._triton.expressions.kinds import never_an_int
from culaunch._triton.expressions.saved import read_expression, write_expression
from culaunch._triton.expressions.text import parse_expressions
from culaunch._triton.expressions.traced import traced_grid, traced_heuristic
from culaunch._triton.expressions.tree import (
    SHAPES,
    Expression,
    constant,
    is_boolean,
    names_of,
    walk,
)

__all__ = [
    "SHAPES",
    "Expression",
    "ExpressionError",
    "constant",
    "evaluate",
    "is_boolean",
    "known_leaf",
    "known_values",
    "names_of",
    "never_an_int",
    "parse_expressions",
    "partly",
    "read_expression",
    "traced_grid",
    "traced_heuristic",
    "walk",
    "write_expression",
]
