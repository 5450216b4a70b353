"""Expressions in text form: ``"cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1, 1"``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from culaunch._triton.expressions.saved import check_size, is_dimension
from culaunch._triton.expressions.tree import DIMENSIONED, Expression, constant, make

if TYPE_CHECKING:
    from collections.abc import Collection

_BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
_COMPARED = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_UNARY = {ast.USub: "neg", ast.Not: "not", ast.Invert: "invert"}
_CALLED = {
    "cdiv": 2, "next_power_of_2": 1, "abs": 1, "int": 1, "float": 1, "bool": 1, "ceil": 1,
    "floor": 1,
}  # fmt: skip
_MODULES = ("triton", "tl", "math")  # the modules of these functions in Python
# The queries of an array's shape, as an attribute and as a method.
_PARTS = {"ndim": "rank"}
_METHODS = {"size": "size", "stride": "stride", "dim": "rank", "numel": "count"}
_LONGEST = 10_000
_DEEPEST = 200  # nested operations; the reader and the evaluator recurse


def parse_expressions(text: str, names: Collection[str]) -> tuple[Expression, ...]:
    """Read expressions with commas between them.

    Parameters
    ----------
    text : str
        An expression may contain numbers, the kernel's arguments by name, and Python's arithmetic
        and comparisons. It may contain ``and``, ``or``, ``not``, ``a if b else c`` and ``x is
        None``. It may call ``cdiv``, ``next_power_of_2``, ``min``, ``max``, ``abs``, ``int``,
        ``float``, ``bool``, ``ceil`` and ``floor``. For arrays there are ``x.shape[0]``,
        ``x.size(0)``, ``x.stride(0)``, ``x.ndim``, ``x.dim()`` and ``x.numel()``.
    names : collection of str
        The names of the arguments.

    Raises
    ------
    ValueError
        If the text contains anything else; the message names it.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"an expression of {len(text)} characters is too long")
    try:
        body = _parse(text)
        items = body.elts if isinstance(body, ast.Tuple) else [body]
        return tuple(check_size(_Reader(text, names).read(item)) for item in items)
    except (RecursionError, MemoryError):
        raise ValueError(f"{text!r:.80} is nested too deeply") from None


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:  # a zero byte, half a surrogate
        reason = getattr(error, "msg", "it has characters that Python code cannot have")
        raise ValueError(f"{text!r:.200} is not an expression: {reason}") from None


class _Reader:
    def __init__(self, text: str, names: Collection[str]) -> None:
        self._text = text
        self._names = names
        self._depth = 0

    def read(self, node: ast.expr) -> Expression:
        if self._depth == _DEEPEST:
            raise ValueError(f"{self._text!r:.80} is nested too deeply")
        self._depth += 1
        try:
            return self._read(node)
        finally:
            self._depth -= 1

    def _read(self, node: ast.expr) -> Expression:
        if isinstance(node, ast.Constant):
            if node.value is None or isinstance(node.value, (bool, int, float, str)):
                return constant(node.value)
        elif isinstance(node, ast.Name):
            return Expression("value", (self._checked_name(node.id),))
        elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return make(_BINARY[type(node.op)], self.read(node.left), self.read(node.right))
        elif isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            return make(_UNARY[type(node.op)], self.read(node.operand))
        elif isinstance(node, ast.BoolOp):
            return self._logic(node)
        elif isinstance(node, ast.Compare):
            return self._compared(node)
        elif isinstance(node, ast.IfExp):
            return make("if", self.read(node.test), self.read(node.body), self.read(node.orelse))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node, node.func.id)
        elif (found := self._of_something(node)) is not None:
            return found
        raise self._wrong(node)

    def _of_something(self, node: ast.expr) -> Expression | None:
        """Read a function of a module, or a query of an array's shape."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, name = node.func.value, node.func.attr
            if not isinstance(owner, ast.Name) or node.keywords:
                return None
            if owner.id in _MODULES and owner.id not in self._names:
                return self._call(node, name)
            return self._of_shape(owner, _METHODS.get(name), node.args)
        if isinstance(node, ast.Attribute):
            return self._of_shape(node.value, _PARTS.get(node.attr), [])
        is_subscript = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute)
        if is_subscript and node.value.attr == "shape":  # type: ignore[attr-defined]
            return self._of_shape(node.value.value, "size", [node.slice])  # type: ignore[attr-defined]
        return None

    def _of_shape(
        self, owner: ast.expr, op: str | None, dimensions: list[ast.expr]
    ) -> Expression | None:
        if op is None or not isinstance(owner, ast.Name):
            return None
        try:
            found = [ast.literal_eval(one) for one in dimensions]
        except ValueError:
            return None
        if len(found) != (op in DIMENSIONED) or not all(map(is_dimension, found)):
            return None
        return Expression(op, (self._checked_name(owner.id), *found))

    def _checked_name(self, name: str) -> str:
        if name not in self._names:
            raise ValueError(
                f"{self._text!r:.200} reads {name}, which is not a parameter: the parameters are "
                f"{', '.join(self._names)}"
            )
        return name

    def _logic(self, node: ast.BoolOp) -> Expression:
        # As in Python: `a and b` is `b` if `a` is true, and `a` itself if it is not.
        *before, made = map(self.read, node.values)
        for one in reversed(before):
            made = (
                make("if", one, made, one)
                if isinstance(node.op, ast.And)
                else make("if", one, one, made)
            )
        return made

    def _compared(self, node: ast.Compare) -> Expression:
        made = None
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            # `a < b < c` is `a < b and b < c`.
            one = self._pair(node, left, op, right)
            made = one if made is None else make("if", made, one, made)
            left = right
        assert made is not None
        return made

    def _pair(self, node: ast.expr, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Expression:
        if type(op) in _COMPARED:
            return make(_COMPARED[type(op)], self.read(left), self.read(right))
        is_none = isinstance(right, ast.Constant) and right.value is None
        if not isinstance(op, (ast.Is, ast.IsNot)) or not is_none or not isinstance(left, ast.Name):
            raise self._wrong(node)
        made = Expression("is_none", (self._checked_name(left.id),))
        return made if isinstance(op, ast.Is) else make("not", made)

    def _call(self, node: ast.Call, name: str) -> Expression:
        operands = [self.read(one) for one in node.args]
        if not node.keywords and name in ("min", "max") and len(operands) >= 2:
            made = operands[0]
            for one in operands[1:]:
                made = make(name, made, one)
            return made
        if node.keywords or _CALLED.get(name) != len(operands):
            raise self._wrong(node)
        return make(name, *operands)

    def _wrong(self, node: ast.expr) -> ValueError:
        shown = ast.get_source_segment(self._text.strip(), node) or type(node).__name__
        return ValueError(
            f"{shown!r:.200} is not supported in an expression, which can use numbers, the "
            "kernel's arguments, arithmetic, comparisons, conditions, x.shape[0], min, max and "
            f"{', '.join(_CALLED)}"
        )
