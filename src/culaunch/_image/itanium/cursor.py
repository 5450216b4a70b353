"""Reading a mangled name character by character, with its substitutions."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from culaunch._image.itanium.nodes import Node, TemplateParam, UnsupportedNameError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_DEPTH = 64
_MAX_DIGITS = 9
_MAX_BINDINGS = 1 << 14
_BASE_36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Cursor:
    """A place in a mangled name, and what was seen before it.

    Parameters
    ----------
    text : str
        The mangled name.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0
        # Each with the template arguments that it was said with.
        self.substitutions: list[tuple[Node, list[Node] | None]] = []
        # Those of the function whose name is parsed; None for a generic lambda's.
        self.template_args: list[Node] | None = []
        self._kept: list[object] = []
        self._bindings: dict[tuple[int, int], Node] = {}

    @property
    def at_end(self) -> bool:
        return self._position >= len(self._text)

    @contextlib.contextmanager
    def nested(self) -> Iterator[None]:
        """Go one level deeper; too deep is not supported, rather than a RecursionError."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnsupportedNameError("too deep")
        yield
        self._depth -= 1

    def peek(self, ahead: int = 0) -> str:
        """Return a character, or an empty text past the end."""
        return self._text[self._position + ahead : self._position + ahead + 1]

    def take(self, count: int = 1) -> str:
        """Take characters."""
        found = self._text[self._position : self._position + count]
        if len(found) < count:
            raise UnsupportedNameError("truncated")
        self._position += count
        return found

    def accept(self, text: str) -> bool:
        """Take a text if it is next."""
        if not self._text.startswith(text, self._position):
            return False
        self._position += len(text)
        return True

    def expect(self, text: str) -> None:
        """Take a text that must be next."""
        if not self.accept(text):
            raise UnsupportedNameError(f"no {text!r}")

    def digits(self) -> int:
        """Take a decimal number."""
        start = self._position
        while self.peek().isdigit():
            self._position += 1
        text = self._text[start : self._position]
        if not 0 < len(text) <= _MAX_DIGITS:
            raise UnsupportedNameError("no number")
        return int(text)

    def number(self) -> str:
        """Take a number of any length, `n` for minus, as text."""
        sign = "-" if self.accept("n") else ""
        start = self._position
        while self.peek().isdigit():
            self._position += 1
        return sign + self._text[start : self._position]

    def cv_qualifiers(self) -> str:
        """Take qualifiers, in the order in which C++ names them."""
        found = []
        for letter, word in (("r", "restrict"), ("V", "volatile"), ("K", "const")):
            if self.accept(letter):
                found.append(word)
        return " ".join(reversed(found))

    def remember(self, node: Node) -> None:
        """Make a part available to later substitutions."""
        self.substitutions.append((node, self.template_args))

    def substituted(self) -> Node:
        """Return the part that `_`, `0_`, `1_` ... names, after the `S`."""
        index = self.sequence_number(_BASE_36)
        if index >= len(self.substitutions):
            raise UnsupportedNameError("a substitution of nothing")
        node, said_with = self.substitutions[index]
        return node if said_with is self.template_args else self._rebound(node)

    def argument(self, index: int) -> Node:
        """Return the template argument of a number."""
        if self.template_args is None:
            return Node(f"auto:{index + 1}")
        if index >= len(self.template_args):
            raise UnsupportedNameError("a template parameter without an argument")
        return self.template_args[index]

    def _rebound(self, node: Node) -> Node:
        """Return what a part says with the template arguments of here.

        `T_` in one function's name and `T_` in that of a function inside its arguments are the
        same to the substitutions, and not the same type.
        """
        if not node.uses_params:
            return node
        key = id(node), id(self.template_args)
        if key not in self._bindings:
            if len(self._bindings) > _MAX_BINDINGS:
                raise UnsupportedNameError("too many parts")
            if isinstance(node, TemplateParam):
                found: Node = TemplateParam(node.index, self.argument(node.index))
            else:
                arguments, options = node.made_of
                found = type(node)(*map(self._rebound_part, arguments), **options)
            # Both are kept: their identities must not become those of others.
            self._bindings[key] = found
            self._kept += [node, self.template_args]
        return self._bindings[key]

    def _rebound_part(self, part: object) -> Any:
        if isinstance(part, Node):
            return self._rebound(part)
        if isinstance(part, (list, tuple)):
            return [self._rebound_part(item) for item in part]
        return part

    def sequence_number(self, digits: str = _BASE_36[:10]) -> int:
        """Take `_`, `0_`, `1_`, ...: 0, 1, 2."""
        value = 0
        if self.accept("_"):
            return 0
        count = 0
        while not self.accept("_"):
            digit = self.take()
            count += 1
            if digit not in digits or count > _MAX_DIGITS:
                raise UnsupportedNameError("no sequence number")
            value = value * len(digits) + digits.index(digit)
        return value + 1
