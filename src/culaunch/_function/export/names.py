"""Names in generated C++: the body's variables, if known."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import textwrap
from typing import TYPE_CHECKING

from culaunch._base.places import Place

if TYPE_CHECKING:
    import types
    from collections.abc import Iterable, Iterator

_TAKEN = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept
    const constexpr const_cast continue co_await co_return co_yield decltype default delete do
    double dynamic_cast else enum explicit export extern false float for friend goto if inline int
    long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
    public register reinterpret_cast requires return short signed sizeof static static_assert
    static_cast struct switch template this thread_local throw true try typedef typeid typename
    union unsigned using virtual void volatile wchar_t while xor xor_eq
    call outputs arguments result ffi fn culaunch tvm std main int64_t TensorView NAN
    HUGE_VAL INT64_MIN errno assert stdin stdout stderr linux unix
"""
_OPERATORS = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod,
    "**": ast.Pow, "<<": ast.LShift, ">>": ast.RShift, "&": ast.BitAnd, "|": ast.BitOr,
    "^": ast.BitXor,
}  # fmt: skip


class Names:
    """C++ identifiers of one function. Each is used once in a block and its enclosing blocks."""

    def __init__(self) -> None:
        self._taken = set(_TAKEN.split())

    def new(self, wanted: str) -> str:
        """Return a new identifier like a text."""
        base = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or "t"
        if base[0].isdigit():
            base = f"t{base}"
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """Release the names of a block at its end."""
        before = set(self._taken)
        yield
        self._taken = before


class Variables:
    """The assignments in the body of a function, by line and by text."""

    def __init__(self, body: types.FunctionType | None) -> None:
        self.file = "" if body is None else body.__code__.co_filename
        self._by_line: dict[int, tuple[str, ast.expr]] = {}
        self._by_text: dict[str, str] = {}
        if body is None:
            return
        # Names only help the reader. If the source is missing, or differs from the running code,
        # the generated code is still correct.
        for node in ast.walk(_parsed(body)):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            target = node.targets[0]
            if isinstance(target, ast.Name):
                self._by_line[node.lineno] = (target.id, node.value)
                # Use the first assignment of a text, because later ones may be in another branch.
                self._by_text.setdefault(ast.unparse(node.value), target.id)
            elif isinstance(target, ast.Tuple):
                text = ast.unparse(node.value)
                for index, one in enumerate(target.elts):
                    if isinstance(one, ast.Name):
                        self._by_text.setdefault(f"{text}[{index}]", one.id)

    def of_text(self, *texts: str) -> str | None:
        """Return the variable that is assigned an expression, written in one of these ways."""
        return next((self._by_text[text] for text in texts if text in self._by_text), None)

    def of_operation(self, place: object, symbol: str) -> str | None:
        """Return the variable that a line assigns an operation's result to."""
        found = self._at(place)
        if found is None:
            return None
        name, value = found
        if isinstance(value, ast.BinOp):
            operator = _OPERATORS.get(symbol)
            return name if operator is not None and isinstance(value.op, operator) else None
        if isinstance(value, ast.Call):
            called = ast.unparse(value.func).rpartition(".")[2]
            return name if called == symbol else None
        return None

    def of_array(self, place: object) -> str | None:
        """Return the variable that a line assigns a new array to."""
        found = self._at(place)
        if found is None or not isinstance(found[1], ast.Call):
            return None
        called = ast.unparse(found[1].func).rpartition(".")[2]
        return found[0] if called.startswith(("empty", "zeros")) else None

    def _at(self, place: object) -> tuple[str, ast.expr] | None:
        if not isinstance(place, Place) or place.file != self.file:
            return None
        return self._by_line.get(place.line)


def text_literal(text: str) -> str:
    """Return a C++ literal of a text."""
    parts = []
    for byte in text.encode():
        char = chr(byte)
        if char in '"\\':
            parts.append("\\" + char)
        elif char == "\n":
            parts.append("\\n")
        # Use octal escapes, which end after three digits. Two question marks may begin a trigraph.
        elif not 32 <= byte < 127 or char == "?":
            parts.append(f"\\{byte:03o}")
        else:
            parts.append(char)
    return f'"{"".join(parts)}"'


def comment(texts: Iterable[str]) -> str:
    """Return a line of comment. Nothing in the text can end or continue it."""
    return "// " + " ".join(" ".join(texts).split()).rstrip("\\")


def _parsed(body: types.FunctionType) -> ast.AST:
    try:
        lines, first = inspect.getsourcelines(body)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return ast.Module(body=[], type_ignores=[])
    return ast.increment_lineno(tree, first - 1)
