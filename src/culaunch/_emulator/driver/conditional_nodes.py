"""Conditional nodes of the emulated driver's graphs: their conditions, and their bodies."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from culaunch._base.cuda import ConditionalType, GraphNodeType
from culaunch._emulator.driver.graph_nodes import ExecutableGraph, Graph, Node
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.fault import INVALID_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator

# As cuda.h says of CUDA_CONDITIONAL_NODE_PARAMS.
_IN_BODIES = {
    GraphNodeType.KERNEL,
    GraphNodeType.EMPTY,
    GraphNodeType.GRAPH,
    GraphNodeType.MEMCPY,
    GraphNodeType.MEMSET,
    GraphNodeType.CONDITIONAL,
}


class ConditionalParams(ctypes.Structure):
    """``CUDA_CONDITIONAL_NODE_PARAMS``."""

    _fields_ = (
        ("condition", ctypes.c_ulonglong),
        ("kind", ctypes.c_int),
        ("size", ctypes.c_uint),
        ("bodies", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class ConditionalNode(Node):
    """A node that runs one of its graphs, or none, as the value of its condition says."""

    def __init__(self, dependencies: list[int], params: ConditionalParams, root: Graph) -> None:
        super().__init__(GraphNodeType.CONDITIONAL, dependencies)
        if params.condition not in root.conditions:
            raise Refusal(INVALID_VALUE, f"{params.condition:#x} is not a condition of the graph")
        if params.condition in root.used_conditions:
            raise Refusal(INVALID_VALUE, f"{params.condition:#x} controls another node")
        most = {ConditionalType.IF: 2, ConditionalType.WHILE: 1, ConditionalType.SWITCH: 1 << 16}
        if not 1 <= params.size <= most.get(params.kind, 0):
            raise Refusal(INVALID_VALUE, f"{params.size} bodies for the type {params.kind}")
        self.condition: int = params.condition
        self.type = ConditionalType(params.kind)
        self.graphs = [Graph(root) for _ in range(params.size)]
        self.runs: list[ExecutableGraph] = []
        root.used_conditions.add(self.condition)

    def show_graphs(self, handles: list[int]) -> int:
        """Return the address of the graphs' handles, which stay with the node."""
        self._shown = (ctypes.c_void_p * len(handles))(*handles)
        return ctypes.addressof(self._shown)

    def handles(self) -> list[int]:
        """Return the handles of the graphs."""
        return list(self._shown)

    def copied(self) -> ConditionalNode:
        """Return a node for an executable graph, with executable bodies."""
        copied = super().copied()
        assert isinstance(copied, ConditionalNode)
        copied.runs = [ExecutableGraph(graph) for graph in self.graphs]
        return copied

    def choose(self, value: int) -> ExecutableGraph | None:
        """Return the body that runs for a value of the condition."""
        number = value if self.type == ConditionalType.SWITCH else int(value == 0)
        return self.runs[number] if number < len(self.runs) else None


def conditional_nodes(graph: Graph) -> Iterator[ConditionalNode]:
    """Yield the conditional nodes of a graph and of the bodies in it."""
    for node in graph.nodes.values():
        if isinstance(node, ConditionalNode):
            yield node
            for body in node.graphs:
                yield from conditional_nodes(body)


def require_no_conditions(graph: Graph, doing: str) -> None:
    """Refuse to copy a graph that has conditional nodes, as CUDA does."""
    if next(conditional_nodes(graph), None) is not None:
        raise Refusal(INVALID_VALUE, f"a graph with conditional nodes cannot be {doing}")


def require_complete(graph: Graph) -> None:
    """Refuse to instantiate a graph with wrong nodes in bodies, or with an unused condition."""
    for handle in graph.conditions.keys() - graph.used_conditions:
        raise Refusal(INVALID_VALUE, f"the condition {handle:#x} controls no node")
    for node in conditional_nodes(graph):
        for body in node.graphs:
            _require_allowed(list(body.nodes.values()))


def _require_allowed(nodes: list[Node]) -> None:
    for node in nodes:
        if node.kind not in _IN_BODIES:
            raise Refusal(INVALID_VALUE, f"a conditional body has a node of type {node.kind.name}")
        if node.kind == GraphNodeType.GRAPH:
            _require_allowed(list(node.params[1].nodes.values()))
