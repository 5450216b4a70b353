"""Expressions of the Itanium grammar: literals, and what stands in array sizes and decltype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._image.itanium.declarators import Function
from culaunch._image.itanium.nodes import (
    Commas,
    Expansion,
    Joined,
    Node,
    Operand,
    UnsupportedNameError,
)
from culaunch._image.itanium.tables import LITERAL_SUFFIXES, OPERATORS
from culaunch._image.itanium.types import Types

if TYPE_CHECKING:
    from collections.abc import Sequence

_CASTS = {"sc": "static_cast", "cc": "const_cast", "rc": "reinterpret_cast", "dc": "dynamic_cast"}


class Expressions(Types):
    """Parse expressions."""

    def encoding(self) -> Node:
        raise NotImplementedError

    def literal(self) -> Node:
        self.expect("L")
        if self.accept("_Z"):
            found = self.encoding()
            self.expect("E")
            return found
        letter = self.peek()
        if letter in LITERAL_SUFFIXES:
            self.take()
            found = Node(self._value() + LITERAL_SUFFIXES[letter])
        elif letter == "b" and self.peek(1) in ("0", "1"):
            self.take()
            found = Node("true" if self.take() == "1" else "false")
        elif letter in ("f", "d", "e", "g"):
            kind = self.type()
            digits = ""
            while self.peek() and self.peek() in "0123456789abcdef":
                digits += self.take()
            found = Joined("(", kind, ")[", digits, "]")
        else:
            kind = self.type()
            found = Joined("(", kind, ")", self._value())
        self.expect("E")
        return found

    def _value(self) -> str:
        text = self.number()
        if not text.lstrip("-"):
            raise UnsupportedNameError("a literal without a value")
        return text

    def expression(self) -> Node:
        with self.nested():
            first = self.peek()
            if first == "L":
                return self.literal()
            if first == "T":
                return self.template_param()
            if first.isdigit():
                return self._unresolved()
            code = first + self.peek(1)
            if code in ("fp", "fL"):
                return self._function_param()
            if code == "on":
                self.take(2)
                return self._unresolved()
            self.take(2)
            return self._operation(code)

    def _operation(self, code: str) -> Node:
        operator, operands = OPERATORS.get(code, ("", 0))
        if operands == 1:
            inner = self.expression()
            if code == "ad" and isinstance(inner, Function) and inner.is_member:
                # Of a member, the address is written without the parameters.
                return Joined(operator, inner.name or inner)
            plain = code == "ad" and not isinstance(inner, Function)
            return Joined(operator, inner if plain else _wrapped(inner))
        if operands == 2:
            left = self.expression()
            right = self.expression()
            found = Joined(_wrapped(left), operator, _wrapped(right))
            # An open `>` would end the template arguments.
            return _wrapped(found) if operator == ">" else found
        if code == "qu":
            condition, yes, no = self.expression(), self.expression(), self.expression()
            return Joined(_wrapped(condition), "?", _wrapped(yes), " : ", _wrapped(no))
        if code in ("dt", "pt"):
            left = self.expression()
            return Joined(
                _wrapped(left), "." if code == "dt" else "->", _wrapped(self._unresolved())
            )
        if code == "cl":
            return Joined(_wrapped(self.expression()), Commas("(", self._until_end(), ")"))
        if code == "cv":
            kind = self.type()
            items = self._until_end() if self.accept("_") else [self.expression()]
            return Joined("(", kind, ")", Commas("(", items, ")"))
        if code in _CASTS:
            kind = self.type()
            return Joined(f"{_CASTS[code]}<", kind, ">(", self.expression(), ")")
        if code == "st":
            return Joined("sizeof (", self.type(), ")")
        if code == "at":
            return Joined("alignof (", self.type(), ")")
        if code == "sz":
            return Joined("sizeof ", _wrapped(self.expression()))
        if code == "sr":
            return Operand(Joined(self._scope(), self._unresolved()))
        if code == "sp":
            return Expansion(self.expression())
        if code == "tl":
            return Joined(self.type(), Commas("{", self._until_end(), "}"))
        if code == "il":
            return Commas("{", self._until_end(), "}")
        raise UnsupportedNameError(f"expression {code!r}")

    def _scope(self) -> Node:
        """Parse what stands before the last `::`, with the `::`."""
        parts: list[Node | str] = []
        several = self.accept("N")
        if not self.peek().isdigit():
            parts += [self.type(), "::"]
            if not several:
                return Joined(*parts)
        while not self.accept("E"):
            parts += [self._unresolved(), "::"]
        return Joined(*parts)

    def _until_end(self) -> Sequence[Node]:
        found = []
        while not self.accept("E"):
            found.append(self.expression())
        return found

    def _function_param(self) -> Node:
        self.take(2)
        self.cv_qualifiers()
        return Operand(Node(f"{{parm#{self.sequence_number() + 1}}}"))

    def _unresolved(self) -> Node:
        found = self.unqualified_name()
        if self.peek() == "I":
            return Joined(found, Commas("<", self.template_arguments(), ">"))
        return Operand(found)


def _wrapped(node: Node) -> Node:
    return node if node.is_operand else Joined("(", node, ")")
