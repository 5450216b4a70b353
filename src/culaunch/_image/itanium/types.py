"""Types and template arguments of the Itanium grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._image.itanium.cursor import Cursor
from culaunch._image.itanium.declarators import Array, Function, Pointer, Qualified
from culaunch._image.itanium.nodes import (
    Commas,
    Expansion,
    Joined,
    Node,
    Pack,
    TemplateParam,
    UnsupportedNameError,
)
from culaunch._image.itanium.tables import BUILTINS, LONG_BUILTINS

if TYPE_CHECKING:
    from collections.abc import Sequence

_POINTERS = {"P": "*", "R": "&", "O": "&&"}


class Types(Cursor):
    """Parse types. Names and expressions, which types contain, are in the derived classes."""

    def name(self) -> Node:
        raise NotImplementedError

    def unqualified_name(self, scope: Node | None = None) -> Node:
        raise NotImplementedError

    def substitution(self) -> Node:
        raise NotImplementedError

    def expression(self) -> Node:
        raise NotImplementedError

    def literal(self) -> Node:
        raise NotImplementedError

    def type(self) -> Node:
        """Parse one type, and remember it where the grammar says so."""
        with self.nested():
            first = self.peek()
            if first in BUILTINS:
                return Node(BUILTINS[self.take()])
            if first == "D" and self.peek(1) in LONG_BUILTINS:
                self.take()
                return Node(LONG_BUILTINS[self.take()])
            if first == "S" and self.peek(1) != "t":
                found = self.substitution()
                if self.peek() != "I":
                    return found
                found = Joined(found, Commas("<", self.template_arguments(), ">"))
            else:
                found = self._compound(first)
            self.remember(found)
            return found

    def _compound(self, first: str) -> Node:
        if first in ("r", "V", "K"):
            words = self.cv_qualifiers()
            if self.peek() == "F":
                return self._function(f" {words}")
            return Qualified(self.type(), words)
        if first in _POINTERS:
            self.take()
            return Pointer(self.type(), _POINTERS[first])
        if first == "F":
            return self._function("")
        if first == "A":
            return self._array()
        if first == "M":
            self.take()
            owner = self.type()
            return Pointer(self.type(), "*", owner)
        if first == "T":
            return self._parameter_type()
        if first == "D":
            return self._extended()
        if first == "U":
            self.take()
            words = self.take(self.digits())
            return Qualified(self.type(), words, vendor=True)
        if first == "u":
            self.take()
            return Node(self.take(self.digits()))
        return self.name()

    def _parameter_type(self) -> Node:
        if self.peek(1) in ("s", "u", "e"):
            # `struct X`, spelled out in the source: an elaborated name.
            self.take(2)
            return self.name()
        found = self.template_param()
        if self.peek() != "I":
            return found
        self.remember(found)
        return Joined(found, Commas("<", self.template_arguments(), ">"))

    def _extended(self) -> Node:
        if self.accept("Dp"):
            return Expansion(self.type())
        if self.peek(1) in ("t", "T"):
            return self.decltype()
        if self.accept("Dv"):
            size = Node(str(self.digits()))
            self.expect("_")
            return Joined(self.type(), " __vector(", size, ")")
        if self.accept("DF"):
            bits = self.digits()
            if self.accept("b"):
                return Node("std::bfloat16_t")
            extended = "x" if self.accept("x") else ""
            if not extended:
                self.expect("_")
            return Node(f"_Float{bits}{extended}")
        if self.accept("Do"):
            return self._function(" noexcept")
        raise UnsupportedNameError(f"type D{self.peek(1)}")

    def decltype(self) -> Node:
        """Parse ``decltype(expression)``."""
        if not self.accept("Dt"):
            self.expect("DT")
        found = Joined("decltype (", self.expression(), ")")
        self.expect("E")
        return found

    def _function(self, qualifiers: str) -> Node:
        self.expect("F")
        self.accept("Y")
        result = self.type()
        params: list[Node] = []
        if not self.accept("v"):
            while self.peek() not in ("E", "R", "O", "") or (
                self.peek() in ("R", "O") and self.peek(1) != "E"
            ):
                params.append(self.type())
        if self.accept("RE"):
            return Function(result, params, f"{qualifiers} &")
        if self.accept("OE"):
            return Function(result, params, f"{qualifiers} &&")
        self.expect("E")
        return Function(result, params, qualifiers)

    def _array(self) -> Node:
        self.expect("A")
        if self.peek().isdigit():
            size = Node(str(self.digits()))
        else:
            size = Node() if self.peek() == "_" else self.expression()
        self.expect("_")
        return Array(self.type(), size)

    def template_param(self) -> Node:
        """Parse ``T_``, ``T0_``, ...: what the template arguments say it is."""
        self.expect("T")
        index = self.sequence_number()
        return TemplateParam(index, self.argument(index))

    def template_arguments(self, tagged: bool = False) -> Sequence[Node]:
        """Parse ``I ... E``; those of the function itself are what ``T_`` refers to."""
        self.expect("I")
        found: list[Node] = []
        if tagged:
            self.template_args = found
        while not self.accept("E"):
            found.append(self._template_argument())
        return found

    def _template_argument(self) -> Node:
        with self.nested():
            if self.accept("J"):
                items = []
                while not self.accept("E"):
                    items.append(self._template_argument())
                return Pack(items)
            if self.accept("X"):
                found = self.expression()
                self.expect("E")
                return found
            if self.peek() == "L":
                return self.literal()
            return self.type()
