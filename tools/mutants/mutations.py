"""The edits that make mutants: each changes one place of a file of Python.

Two kinds of keywords stay as they are, because no caller can observe that they change:

- ``strict=`` of ``zip`` compares lengths that differ only if culaunch has a bug;
- the keywords of ``UNOBSERVED`` change the speed or the text of a result, not its value.
"""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "//", ast.BitOr: "&",
    ast.BitAnd: "|", ast.BitXor: "|", ast.LShift: ">>", ast.RShift: "<<", ast.Pow: "*",
}  # fmt: skip
UNOBSERVED = {
    "maxsize", "stacklevel", "daemon", "slots", "repr", "errors", "encoding", "indent",
    "separators",
}  # fmt: skip


class Mutation(NamedTuple):
    """One edit of a file: its bytes from ``start`` to ``end`` are replaced."""

    path: Path
    function: int  # the first line of the innermost function around it; 0 outside any
    line: int
    start: int
    end: int
    old: str
    new: str
    kind: str

    def applied(self) -> bytes:
        """Return the file with the edit."""
        source = self.path.read_bytes()
        return source[: self.start] + self.new.encode() + source[self.end :]

    def is_python(self) -> bool:
        """Say whether the file with the edit is valid Python."""
        try:
            ast.parse(self.applied())
        except SyntaxError:
            return False
        return True


class Source:
    """A file, and where its nodes stand."""

    def __init__(self, path: Path) -> None:
        self.bytes = path.read_bytes()
        self._lines = [0]
        for line in self.bytes.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def start(self, node: Any) -> int:
        """Return where a node begins."""
        return self._lines[node.lineno - 1] + node.col_offset

    def end(self, node: Any) -> int:
        """Return where a node ends."""
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.AST) -> str:
        """Return the text of a node."""
        return self.bytes[self.start(node) : self.end(node)].decode()


# ---- the edits of a node: the text that replaces it


def compare(source: Source, node: ast.Compare) -> Iterator[str]:
    """Turn a comparison around, or let it include its bound."""
    if len(node.ops) == 1:
        left, right = source.text(node.left), source.text(node.comparators[0])
        yield f"{left} {COMPARISONS[type(node.ops[0])]} {right}"


def operate(source: Source, node: ast.BinOp) -> Iterator[str]:
    """Compute something else; what formats or joins texts only fails then."""
    texts = [
        isinstance(one, ast.JoinedStr)
        or (isinstance(one, ast.Constant) and isinstance(one.value, (str, bytes)))
        for one in (node.left, node.right)
    ]
    if type(node.op) in OPERATORS and not any(texts):
        yield f"({source.text(node.left)}) {OPERATORS[type(node.op)]} ({source.text(node.right)})"


def join(source: Source, node: ast.BoolOp) -> Iterator[str]:
    """Make "or" of "and"."""
    word = " or " if isinstance(node.op, ast.And) else " and "
    yield word.join(f"({source.text(one)})" for one in node.values)


def negate(source: Source, node: ast.UnaryOp) -> Iterator[str]:
    """Leave out a "not"."""
    if isinstance(node.op, ast.Not):
        yield f"bool({source.text(node.operand)})"


def count(_: Source, node: ast.Constant) -> Iterator[str]:
    """Add one to an integer, and make True of False."""
    if isinstance(node.value, bool):
        yield str(not node.value)
    elif isinstance(node.value, int):
        yield str(node.value + 1)


def drop_keyword(source: Source, node: ast.Call) -> Iterator[str]:
    """Call without a keyword."""
    for keyword in node.keywords:
        if keyword.arg and _is_observed(keyword, node):
            before = source.bytes[source.start(node) : source.start(keyword)].decode()
            after = source.bytes[source.end(keyword) : source.end(node)].decode()
            yield before.rstrip(" \n") + after.lstrip(", \n")


def return_nothing(_: Source, node: ast.Return) -> Iterator[str]:
    """Return None."""
    if node.value is not None and not isinstance(node.value, (ast.Constant, ast.Yield)):
        yield "return None"


def check_nothing(_: Source, node: ast.Raise) -> Iterator[str]:
    """Raise no error."""
    if node.exc is not None:
        yield "pass"


EDITS: dict[type[ast.AST], tuple[str, Callable[[Source, Any], Iterator[str]]]] = {
    ast.Compare: ("comparison", compare),
    ast.BinOp: ("operator", operate),
    ast.BoolOp: ("operator", join),
    ast.UnaryOp: ("operator", negate),
    ast.Constant: ("constant", count),
    ast.Call: ("keyword", drop_keyword),
    ast.Return: ("returned value", return_nothing),
    ast.Raise: ("check", check_nothing),
}


@functools.cache
def mutations_of(path: Path) -> list[Mutation]:
    """List the mutations of a file."""
    source = Source(path)
    return list(_below(path, source, ast.parse(source.bytes), 0))


def _below(path: Path, source: Source, node: ast.AST, function: int) -> Iterator[Mutation]:
    if type(node) in EDITS:
        kind, edit = EDITS[type(node)]
        for new in edit(source, node):
            start, end = source.start(node), source.end(node)
            old = source.text(node)
            yield Mutation(path, function, node.lineno, start, end, old, new, kind)  # type: ignore[attr-defined]
    for name, value in ast.iter_fields(node):
        # Annotations and decorators decide nothing here, and messages are not values.
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and _is_observed(child, node):
                yield from _below(path, source, child, _first_line(child) or function)


def _is_observed(node: ast.AST, parent: ast.AST) -> bool:
    if not isinstance(node, ast.keyword):
        return True
    is_zip = isinstance(parent, ast.Call) and ast.unparse(parent.func) == "zip"
    return node.arg not in UNOBSERVED and not (is_zip and node.arg == "strict")


def _first_line(node: ast.AST) -> int:
    """Return where a function begins, as its code object has it: at the first decorator."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return 0
    return min(one.lineno for one in (node, *node.decorator_list))
