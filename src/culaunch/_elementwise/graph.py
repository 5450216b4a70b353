"""The computation of a traced function: operations on the results of others, without duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Container, Hashable

    from culaunch._elementwise import dtypes as dt

Number: TypeAlias = "bool | int | float | complex"


class ReducesError(Exception):
    """A function traced without shapes turned out to reduce, so it is traced with them."""


@dataclass(frozen=True, eq=False)
class Node:
    """An operation on other nodes."""

    trace: Trace
    """The graph that it is in."""
    op: str
    """A name of `OPERATIONS`, or ``input``, ``constant``, ``cast``, ``round_to``, ``where``.
    Functions that reduce add ``reduce``, ``part``, ``count``, ``position``, ``squeeze`` and
    ``call``."""
    dtype: dt.DType
    """The element type of the result; a Python number's is weak."""
    args: tuple[Node, ...] = ()
    index: int = 0
    """The argument of an input; ``-1 - argument`` for one that is a scalar with a type. A part has
    the number of its component."""
    number: Number | None = None
    """The value of a constant."""
    detail: object = None
    """How a reduction combines, and along which dimensions."""


class Trace:
    """The nodes of one traced call.

    A node is found again by its operation and operands: a common subexpression is one node.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: dict[tuple[object, ...], Node] = {}

    def input(self, index: int, dtype: dt.DType) -> Node:
        """Return the node of an argument."""
        return self._once(("input", dtype, index), Node(self, "input", dtype, index=index))

    def constant(self, number: Number, dtype: dt.DType) -> Node:
        """Return the node of a number that has an element type, or a weak one."""
        # 0.0 and -0.0 are equal but not the same; neither are 1 and True.
        key = ("constant", dtype, type(number), repr(number))
        return self._once(key, Node(self, "constant", dtype, number=number))

    def operation(
        self,
        op: str,
        dtype: dt.DType,
        args: tuple[Node, ...],
        index: int = 0,
        detail: Hashable | None = None,
    ) -> Node:
        """Return the node of an operation, existing or new."""
        # Compare by identity: the same operation on the same nodes is one node, and nodes live as
        # long as their trace.
        node = Node(self, op, dtype, args, index, detail=detail)
        return self._once((op, dtype, index, detail, *map(id, args)), node)

    def replace(self, node: Node, by: Node) -> None:
        """Use another node if the operation of a node is traced again."""
        for key, known in self._nodes.items():
            if known is node:
                self._nodes[key] = by
                return

    def _once(self, key: tuple[object, ...], node: Node) -> Node:
        return self._nodes.setdefault(key, node)


def ordered(nodes: tuple[Node, ...], known: Container[Node] = ()) -> list[Node]:
    """Return all nodes that some depend on, each after its operands.

    Parameters
    ----------
    nodes : tuple of Node
    known : container of Node, optional
        Nodes whose operands do not matter.
    """
    done: dict[Node, None] = {}
    pending = [(node, False) for node in nodes]
    while pending:
        node, is_ready = pending.pop()
        if is_ready:
            done[node] = None
        elif node not in done:
            pending.append((node, True))
            if node not in known:
                pending += [(arg, False) for arg in node.args if arg not in done]
    return list(done)
