"""What a mangled name says, as a tree that prints itself.

A C++ type may go around a name: ``void (*name)(int)``. So each node prints what goes on the left,
and then what goes on the right. The nodes that have a right side are in ``declarators``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MAX_DEPTH = 96
_MAX_STEPS = 1 << 17
_MAX_TEXT = 1 << 16


class UnsupportedNameError(Exception):
    """A name that this part of the grammar does not cover, or that is not a mangled name."""


class Printer:
    """Collects text, up to a limit: shared parts make the text of a short name exponential.

    Parameters
    ----------
    west : bool
        ``const float*`` instead of ``float const*``.
    """

    def __init__(self, west: bool = False) -> None:
        self.west = west
        self.pack_index: int | None = None
        # The qualifiers that were just said of the type that is printed next.
        self.said: tuple[str, ...] = ()
        self._parts: list[str] = []
        self._size = 0
        self._steps = 0

    def add(self, text: str) -> None:
        """Append text."""
        self._parts.append(text)
        self._size += len(text)
        self._steps += 1
        if self._size > _MAX_TEXT or self._steps > _MAX_STEPS:
            raise UnsupportedNameError("too long")

    @contextlib.contextmanager
    def expanding(self, index: int | None) -> Iterator[None]:
        """Print one element of the packs, or with None all of them."""
        outer = self.pack_index
        self.pack_index = index
        yield
        self.pack_index = outer

    def ends_with(self, text: str | tuple[str, ...]) -> bool:
        """Tell what the text so far ends with."""
        return next((part for part in reversed(self._parts) if part), "").endswith(text)

    def add_list(self, nodes: Sequence[Node]) -> None:
        """Append nodes with commas between; a pack without elements leaves no comma."""
        first = True
        for node in nodes:
            if not node.is_empty(self):
                if not first:
                    self.add(", ")
                node.print(self)
                first = False

    def text(self) -> str:
        """Return all of it."""
        return "".join(self._parts)


class Node:
    """A part of a name. As it is: a fixed text."""

    # What a pointer to this goes around: "", "array" or "function".
    shape = ""
    # Whether its right side is not empty: then nothing separates it from a function's name.
    goes_around = False
    # Whether it needs no parentheses as an operand.
    is_operand = False

    depth: int
    pack_size: int
    uses_params: bool
    made_of: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *arguments: Any, **options: Any) -> Node:
        """Keep what it is made of, so that the same can be made of other template arguments."""
        self = super().__new__(cls)
        self.made_of = arguments, options
        return self

    def __init__(self, text: str = "", *parts: Node | None) -> None:
        self.value = text
        # Whether it says something else where the template parameters are others.
        self.uses_params = any(part.uses_params for part in parts if part)
        self.depth = 1 + max((part.depth for part in parts if part), default=0)
        # How many elements the packs have that an expansion around this would go through.
        self.pack_size = max((part.pack_size for part in parts if part), default=-1)
        if self.depth > _MAX_DEPTH:
            raise UnsupportedNameError("too deep")

    def print(self, out: Printer) -> None:
        """Print both sides."""
        out.add("")
        self.left(out)
        self.right(out)

    def left(self, out: Printer) -> None:
        """Print what goes before a declarator."""
        out.add(self.value)

    def right(self, out: Printer) -> None:
        """Print what goes after it."""

    def is_empty(self, out: Printer) -> bool:  # noqa: ARG002
        """Tell whether it prints nothing: a pack without elements."""
        return False


class Joined(Node):
    """Parts one after the other."""

    def __init__(self, *parts: Node | str) -> None:
        self._parts = [Node(part) if isinstance(part, str) else part for part in parts]
        super().__init__("", *self._parts)

    def left(self, out: Printer) -> None:
        for part in self._parts:
            part.print(out)


class Operand(Joined):
    """Parts that need no parentheses around them."""

    is_operand = True


class Commas(Node):
    """A list: ``a, b`` between two texts."""

    def __init__(self, before: str, items: Sequence[Node], after: str) -> None:
        super().__init__("", *items)
        self._before, self._items, self._after = before, items, after

    def left(self, out: Printer) -> None:
        out.add(self._before)
        out.add_list(self._items)
        # `> >`, as c++filt has it: the two tokens could be read as a shift.
        if self._after == ">" and out.ends_with(">"):
            out.add(" ")
        out.add(self._after)


class Pack(Node):
    """The arguments for a template parameter pack."""

    def __init__(self, items: Sequence[Node]) -> None:
        super().__init__("", *items)
        self.items = items

    def left(self, out: Printer) -> None:
        out.add_list(self.items)

    def is_empty(self, out: Printer) -> bool:
        return all(item.is_empty(out) for item in self.items)


class TemplateParam(Node):
    """A template parameter by its number; of a pack in an expansion, one element."""

    def __init__(self, index: int, argument: Node) -> None:
        super().__init__("", argument)
        self.uses_params = True
        self.index, self.argument = index, argument
        self.shape, self.goes_around = argument.shape, argument.goes_around
        self.pack_size = len(argument.items) if isinstance(argument, Pack) else -1

    def left(self, out: Printer) -> None:
        if node := self.element(out):
            with out.expanding(None):
                node.left(out)

    def right(self, out: Printer) -> None:
        if node := self.element(out):
            with out.expanding(None):
                node.right(out)

    def is_empty(self, out: Printer) -> bool:
        node = self.element(out)
        return node is None or node.is_empty(out)

    def element(self, out: Printer) -> Node | None:
        """Return the argument; in an expansion, one element of it."""
        if out.pack_index is None or not isinstance(self.argument, Pack):
            return self.argument
        items = self.argument.items
        return items[out.pack_index] if out.pack_index < len(items) else None


class Expansion(Node):
    """A pattern, once for each element of the packs in it."""

    def __init__(self, pattern: Node) -> None:
        super().__init__("", pattern)
        self.pattern, self.count = pattern, pattern.pack_size
        self.pack_size = -1

    def left(self, out: Printer) -> None:
        if self.count < 0:
            before, after = ("", "...") if self.pattern.is_operand else ("(", ")...")
            out.add(before)
            self.pattern.print(out)
            out.add(after)
        for index in range(self.count):
            if index:
                out.add(", ")
            with out.expanding(index):
                self.pattern.print(out)

    def is_empty(self, out: Printer) -> bool:  # noqa: ARG002
        return self.count == 0
