"""Types that go around a name: pointers, references, arrays, functions.

A C++ declarator has parts on both sides of the name: ``void (*name)(int)``, ``float (&name)[3]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._image.itanium.nodes import Node, TemplateParam

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._image.itanium.nodes import Printer


class Qualified(Node):
    """A type with const, volatile or restrict."""

    def __init__(self, inner: Node, words: str, vendor: bool = False) -> None:
        super().__init__(words, inner)
        self.inner = inner
        self.shape = inner.shape
        self.goes_around = inner.goes_around
        self._east = vendor or isinstance(_argument(inner), (Pointer, Function, Array))

    def left(self, out: Printer) -> None:
        # Const of what is const already is said once.
        said, out.said = out.said, ()
        words = tuple(word for word in self.value.split() if word not in said)
        text = " ".join(words)
        if text and out.west and not self._east:
            out.add(f"{text} ")
        if isinstance(_resolved(self.inner, out), Qualified):
            out.said = said + words
        self.inner.left(out)
        if text and not (out.west and not self._east):
            out.add(f" {text}")

    def right(self, out: Printer) -> None:
        self.inner.right(out)


class Pointer(Node):
    """A pointer, a reference, or (with the class as prefix) a pointer to a member."""

    def __init__(self, inner: Node, symbol: str, owner: Node | None = None) -> None:
        known = _argument(inner)
        if symbol in ("&", "&&") and isinstance(known, Pointer) and known.value in ("&", "&&"):
            # References to references collapse: && only if both are.
            symbol = "&&" if symbol == known.value == "&&" else "&"
            inner = known.inner
        self.inner: Node = inner
        self._owner = owner
        super().__init__(symbol, inner, owner)
        self.goes_around = bool(inner.shape) or inner.goes_around

    def left(self, out: Printer) -> None:
        self.inner.left(out)
        shape = _shape(self.inner, out)
        if shape == "array":
            out.add(" (")
        elif shape:
            out.add("(" if out.ends_with((" ", "(", "*", "&")) else " (")
        elif self._owner:
            out.add(" ")
        if self._owner:
            self._owner.print(out)
            out.add("::")
        out.add(self.value)

    def right(self, out: Printer) -> None:
        if _shape(self.inner, out):
            out.add(")")
        self.inner.right(out)


class Array(Node):
    """An array."""

    shape = "array"

    def __init__(self, element: Node, size: Node) -> None:
        super().__init__("", element, size)
        self._element, self._size = element, size

    def left(self, out: Printer) -> None:
        self._element.left(out)

    def right(self, out: Printer) -> None:
        out.add("[" if out.ends_with("]") else " [")
        self._size.print(out)
        out.add("]")
        self._element.right(out)


class Function(Node):
    """A function: a type, or with a name a whole declaration."""

    shape = "function"

    def __init__(
        self,
        result: Node | None,
        params: Sequence[Node],
        qualifiers: str = "",
        name: Node | None = None,
        is_member: bool = False,
    ) -> None:
        super().__init__("", result, *params, name)
        # One with a name has template parameters of its own.
        self.uses_params = self.uses_params and name is None
        self.params = params
        self.name = name
        self.is_member = is_member
        self._result, self._qualifiers = result, qualifiers

    def without_result(self) -> Function:
        """Return the same function without what it returns."""
        return Function(None, self.params, self._qualifiers, self.name)

    def left(self, out: Printer) -> None:
        if self._result:
            self._result.left(out)
            if not self._result.goes_around:
                out.add(" ")
        if self.name:
            self.name.print(out)

    def right(self, out: Printer) -> None:
        out.add("(")
        out.add_list(self.params)
        out.add(")")
        if self._result:
            self._result.right(out)
        out.add(self._qualifiers)


def _resolved(node: Node | None, out: Printer) -> Node | None:
    """Return what a template parameter stands for where it is printed."""
    while isinstance(node, TemplateParam):
        node = node.element(out)
    return node


def _shape(node: Node | None, out: Printer) -> str:
    """Return the shape of what is printed: an element of a pack has its own."""
    while isinstance(node, (TemplateParam, Qualified)):
        node = node.inner if isinstance(node, Qualified) else node.element(out)
    return node.shape if node else ""


def _argument(node: Node) -> Node:
    """Return what a template parameter stands for, and everything else as it is."""
    while isinstance(node, TemplateParam):
        node = node.argument
    return node
