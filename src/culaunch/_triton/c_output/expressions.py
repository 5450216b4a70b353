"""The expressions of a heuristic or a grid in C, for one variant."""

from __future__ import annotations

import functools
import math
import re
from typing import TYPE_CHECKING, Any

from culaunch._base.data_files import data_text
from culaunch._triton.c_output.values import c_value
from culaunch._triton.expressions import SHAPES
from culaunch._triton.variants.constants import same_constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from culaunch._triton.expressions import Expression

INT, FLOAT, BOOL = "int", "float", "bool"
_FAILED = "&culaunch_failed"
_INTEGER = {
    "+": "add", "-": "subtract", "*": "multiply", "//": "divide", "%": "modulo",
    "<<": "shift_left", ">>": "shift_right", "cdiv": "cdiv",
}  # fmt: skip
_FLOAT = {"+": "+", "-": "-", "*": "*"}


class CannotSay(ValueError):  # noqa: N818 - says whose fault it is where it is caught
    """The reason why C cannot express something."""

    def __init__(self, expression: Expression) -> None:
        super().__init__(f"C cannot express {expression}")


class CExpressions:
    """Writes expressions over the parameters of a C function.

    Parameters
    ----------
    values : mapping of str to (str, str)
        The kernel's arguments by name: the kind of number, and the C expression.
    pointers : mapping of str to str
        The addresses, which an expression may compare with NULL.
    """

    def __init__(self, values: Mapping[str, tuple[str, str]], pointers: Mapping[str, str]) -> None:
        self._values = values
        self._pointers = pointers

    def number(self, expression: Expression) -> str:
        """Return an integer.

        Raises
        ------
        CannotSay
        """
        if expression.op == "if":
            condition, chosen, other = expression.operands
            return f"({self.truth(condition)} ? {self.number(chosen)} : {self.number(other)})"
        if expression.op == "error":
            return f"culaunch_fail({_FAILED})"
        kind, text = self._typed(expression)
        if kind == FLOAT:
            raise CannotSay(expression)
        return text

    def truth(self, expression: Expression) -> str:
        """Return whether an expression is true."""
        if expression.is_constant:
            return "1" if expression.value else "0"
        if expression.op == "if":
            condition, chosen, other = expression.operands
            return f"({self.truth(condition)} ? {self.truth(chosen)} : {self.truth(other)})"
        if expression.op == "error":
            return f"(int)culaunch_fail({_FAILED})"
        kind, text = self._typed(expression)
        return text if kind == BOOL else f"({text} != 0)"

    def equals(self, expression: Expression, value: Any) -> str:
        """Return whether an expression equals a constant, including its type."""
        if expression.is_constant:
            return "1" if same_constant(expression.value, value) else "0"
        if expression.op == "if":
            condition, chosen, other = expression.operands
            return (
                f"({self.truth(condition)} ? {self.equals(chosen, value)} : "
                f"{self.equals(other, value)})"
            )
        if expression.op == "error":
            return f"(int)culaunch_fail({_FAILED})"
        kind, text = self._typed(expression)
        if type(value) is not {INT: int, FLOAT: float, BOOL: bool}[kind]:
            return "0"
        if kind == FLOAT:
            return f"({text} == {_c_float(value, expression)})"
        return f"({text} == {c_value(value)})"

    def _typed(self, expression: Expression) -> tuple[str, str]:
        """Return an expression's kind of number, and the number."""
        op, operands = expression.op, expression.operands
        if op == "constant":
            return _constant(expression)
        if op == "value":
            found = self._values.get(operands[0])
            if found is None:
                raise CannotSay(expression)
            return found
        if op in (*SHAPES, "is_array"):  # C has only an address
            raise CannotSay(expression)
        if op == "is_none":
            if operands[0] not in self._pointers:
                raise CannotSay(expression)
            return BOOL, f"({self._pointers[operands[0]]} == 0)"
        if op == "if":
            # Both results must have one kind. An error fits any kind, because it has no value.
            kinds = {self._typed(one)[0] for one in operands[1:] if one.op != "error"}
            if len(kinds) != 1:
                raise CannotSay(expression)
            chosen, other = (
                f"culaunch_fail({_FAILED})" if one.op == "error" else self._typed(one)[1]
                for one in operands[1:]
            )
            return kinds.pop(), f"({self.truth(operands[0])} ? {chosen} : {other})"
        if op in ("not", "bool"):
            return BOOL, f"(!{self.truth(operands[0])})" if op == "not" else self.truth(operands[0])
        if op in ("==", "!="):
            return BOOL, self._same(expression)
        return self._operation(expression)

    def _same(self, expression: Expression) -> str:
        op, (left, right) = expression.op, expression.operands
        # Write the other operand anyway, because it may refuse the call.
        for one, other in ((left, right), (right, left)):
            # A number never equals a text or None.
            if one.is_constant and not isinstance(one.value, (int, float)):
                self._typed(other)
                return "0" if op == "==" else "1"
        _, texts = self._alike(expression)
        return f"({texts[0]} {op} {texts[1]})"

    def _alike(self, expression: Expression) -> tuple[str, list[str]]:
        """Return the operands as numbers of one kind."""
        typed = [self._typed(one) for one in expression.operands]
        if any(kind == FLOAT for kind, _ in typed):
            return FLOAT, [text if kind == FLOAT else _as_float(text) for kind, text in typed]
        return INT, [text for _, text in typed]

    def _operation(self, expression: Expression) -> tuple[str, str]:
        op = expression.op
        kind, texts = self._alike(expression)
        listed = ", ".join(texts)
        if op in ("<", "<=", ">", ">="):
            return BOOL, f"({texts[0]} {op} {texts[1]})"
        if op in ("min", "max"):
            name = ("least" if op == "min" else "most") + ("_float" if kind == FLOAT else "")
            # In Python, min(1, 2.0) is an int or a float depending on the values. C needs one type
            # in advance.
            if len({one for one, _ in map(self._typed, expression.operands)} - {BOOL}) > 1:
                raise CannotSay(expression)  # the result may be an int or a float
            return kind, f"culaunch_{name}({listed})"
        if op == "/":
            floats = texts if kind == FLOAT else [_as_float(text) for text in texts]
            return FLOAT, f"culaunch_quotient({', '.join(floats)}, {_FAILED})"
        if op in ("ceil", "floor", "int"):
            if kind == INT:
                return INT, texts[0]
            call = "" if op == "int" else op
            return INT, f"culaunch_int({call}({texts[0]}), {_FAILED})"
        if op == "float":
            return FLOAT, texts[0] if kind == FLOAT else _as_float(texts[0])
        if kind == FLOAT:
            if op == "neg":
                return FLOAT, f"(-{texts[0]})"
            if op == "abs":
                return FLOAT, f"fabs({texts[0]})"
            if op not in _FLOAT:
                raise CannotSay(expression)
            return FLOAT, f"({texts[0]} {op} {texts[1]})"
        if op in ("&", "|", "^"):
            kinds = {one for one, _ in map(self._typed, expression.operands)}
            return BOOL if kinds == {BOOL} else INT, f"({texts[0]} {op} {texts[1]})"
        if op == "invert":
            return INT, f"(~(int64_t){texts[0]})"
        name = {"neg": "negate", "abs": "absolute"}.get(op) or _INTEGER.get(op, op)
        return INT, f"culaunch_{name}({listed}, {_FAILED})"


def arithmetic_used(texts: Iterable[str]) -> str:
    """Return the functions that C code calls, directly or indirectly, in order."""
    functions = _functions()
    wanted: set[str] = set()
    todo = set(re.findall(r"\b(culaunch_\w+)\(", "".join(texts))) & functions.keys()
    # Search the text of a function for the functions that it calls, until nothing new is found.
    while todo:
        wanted |= todo
        called = {
            name for one in todo for name in re.findall(r"\b(culaunch_\w+)\(", functions[one])
        }
        todo = (called & functions.keys()) - wanted
    made = [text for name, text in functions.items() if name in wanted]
    return "\n\n".join(made) + "\n" if made else ""


@functools.cache
def _functions() -> dict[str, str]:
    pieces = data_text(__name__, "c/arithmetic.c").rstrip().split("\n\n")
    found = {}
    for piece in pieces:
        match = re.search(r"^static \w+ (culaunch_\w+)\(", piece, re.MULTILINE)
        assert match is not None, piece
        found[match[1]] = piece
    return found


def _constant(expression: Expression) -> tuple[str, str]:
    value = expression.value
    if isinstance(value, bool):
        return BOOL, "1" if value else "0"
    if isinstance(value, int):
        return INT, c_value(value)
    if isinstance(value, float):
        return FLOAT, _c_float(value, expression)
    raise CannotSay(expression)


def _c_float(value: Any, expression: Expression) -> str:
    if not math.isfinite(value):
        raise CannotSay(expression)
    return f"({value!r})" if "e" in repr(value) or "." in repr(value) else f"({value!r}.0)"


def _as_float(text: str) -> str:
    return f"culaunch_float({text}, {_FAILED})"
