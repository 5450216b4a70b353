"""Names and encodings of the Itanium grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._image.itanium.declarators import Function
from culaunch._image.itanium.expressions import Expressions
from culaunch._image.itanium.nodes import Commas, Joined, Node, UnsupportedNameError
from culaunch._image.itanium.tables import OPERATORS, STANDARD

if TYPE_CHECKING:
    from collections.abc import Sequence

_ANONYMOUS = ("_GLOBAL__N", "_GLOBAL_.N", "_GLOBAL_$N")


class Parser(Expressions):
    """Parse one mangled name; types and expressions are in the base classes."""

    def whole(self) -> Node:
        """Parse a whole mangled name: a Function if it is that of a function."""
        self.expect("_Z")
        found = self.encoding()
        if not self.at_end:
            raise UnsupportedNameError("more after the name")
        return found

    def encoding(self) -> Node:
        with self.nested():
            outer = self.template_args
            self.template_args = []
            is_nested = self.peek() == "N"
            name, is_template, qualifiers = self._name(tagged=True)
            if self.at_end or self.peek() in "E.":
                self.template_args = outer
                return name
            result = self.type() if is_template else None
            params = self._params()
            self.template_args = outer
            return Function(result, params, qualifiers, name, is_nested and not is_template)

    def name(self) -> Node:
        return self._name(tagged=False)[0]

    def _params(self) -> Sequence[Node]:
        if self.accept("v"):
            return ()
        params = [self.type()]
        while not self.at_end and self.peek() not in "E.":
            params.append(self.type())
        return params

    def _name(self, tagged: bool) -> tuple[Node, bool, str]:
        """Parse a name: the node, whether template arguments end it, its qualifiers."""
        if self.accept("N"):
            return self._nested_name(tagged)
        if self.accept("Z"):
            return self._local_name(tagged)
        if self.peek() == "S" and self.peek(1) != "t":
            found = self.substitution()
            if self.peek() != "I":
                raise UnsupportedNameError("a substitution is no name")
            return Joined(found, self._arguments(tagged)), True, ""
        if self.accept("St"):
            self.accept("L")
            found = Joined("std::", self.unqualified_name())
        else:
            found = self.unqualified_name()
        if self.peek() != "I":
            return found, False, ""
        self.remember(found)
        return Joined(found, self._arguments(tagged)), True, ""

    def _nested_name(self, tagged: bool) -> tuple[Node, bool, str]:
        words = self.cv_qualifiers()
        qualifiers = f" {words}" if words else ""
        if self.accept("R"):
            qualifiers += " &"
        elif self.accept("O"):
            qualifiers += " &&"
        found: Node | None = None
        last: Node | None = None
        is_template = False
        while not self.accept("E"):
            if self.peek() == "S" and found is None:
                found = Node("std") if self.accept("St") else self.substitution()
                last = None
                continue
            is_template = False
            if self.peek() == "I":
                if found is None:
                    raise UnsupportedNameError("template arguments of nothing")
                found = Joined(found, self._arguments(tagged))
                is_template = True
            elif self.peek() == "T" and found is None:
                found = self.template_param()
            elif self.peek() == "D" and self.peek(1) in ("t", "T") and found is None:
                found = self.decltype()
            else:
                last = self.unqualified_name(last)
                found = last if found is None else Joined(found, "::", last)
            self.remember(found)
        if found is None or not self.substitutions:
            raise UnsupportedNameError("an empty name")
        # The whole name is a candidate only as a type, which `type` sees to.
        self.substitutions.pop()
        return found, is_template, qualifiers

    def _local_name(self, tagged: bool) -> tuple[Node, bool, str]:
        where = self.encoding()
        if isinstance(where, Function):
            # As a scope, a function is written without what it returns.
            where = where.without_result()
        self.expect("E")
        if self.accept("s"):
            self._discriminator()
            return Joined(where, "::", "string literal"), False, ""
        if self.accept("d"):
            self.number()
            self.expect("_")
        found, is_template, qualifiers = self._name(tagged)
        self._discriminator()
        return Joined(where, "::", found), is_template, qualifiers

    def _discriminator(self) -> None:
        if self.accept("__"):
            self.digits()
            self.expect("_")
        elif self.peek() == "_" and self.peek(1).isdigit():
            self.expect("_")
            self.take()

    def _arguments(self, tagged: bool) -> Node:
        return Commas("<", self.template_arguments(tagged), ">")

    def unqualified_name(self, scope: Node | None = None) -> Node:
        """Parse one component of a name, with its ABI tags."""
        self.accept("L")
        first = self.peek()
        if first.isdigit():
            found = self._source_name()
        elif first == "U":
            found = self._unnamed()
        elif first in ("C", "D") and self.peek(1) in tuple("0123456") and scope is not None:
            found = Joined("~" if first == "D" else "", scope)
            self.take()
            self.take()
        else:
            found = self._operator_name()
        while self.accept("B"):
            found = Joined(found, "[abi:", self._source_name(), "]")
        return found

    def _source_name(self) -> Node:
        text = self.take(self.digits())
        if not text:
            raise UnsupportedNameError("a name of no letters")
        return Node("(anonymous namespace)" if text.startswith(_ANONYMOUS) else text)

    def _unnamed(self) -> Node:
        if self.accept("Ut"):
            found = Node(f"{{unnamed type#{self._ordinal()}}}")
        else:
            self.expect("Ul")
            params = self._lambda_params()
            self.expect("E")
            found = Commas("{lambda(", params, f")#{self._ordinal()}}}")
        return found

    def _lambda_params(self) -> Sequence[Node]:
        # A generic lambda's template parameters are its own: `auto:1`, `auto:2`.
        outer, self.template_args = self.template_args, None
        params = self._params()
        self.template_args = outer
        return params

    def _ordinal(self) -> int:
        number = 1 if self.peek() == "_" else self.digits() + 2
        self.expect("_")
        return number

    def _operator_name(self) -> Node:
        code = self.peek() + self.peek(1)
        if code == "cv":
            raise UnsupportedNameError("a conversion operator")
        if code == "li":
            self.take(2)
            return Joined('operator"" ', self._source_name())
        if code not in OPERATORS:
            raise UnsupportedNameError(f"unknown component {code!r}")
        self.take(2)
        spelled = OPERATORS[code][0]
        return Node(f"operator{' ' if spelled[0].isalpha() else ''}{spelled}")

    def substitution(self) -> Node:
        self.expect("S")
        standard = self.peek()
        if standard in STANDARD:
            self.take()
            return Node(STANDARD[standard])
        return self.substituted()
