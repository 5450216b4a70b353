"""Conditions of graphs, and the calls that add conditional nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import ConditionalType
from culaunch._base.values import spell
from culaunch._core import take_conditional

if TYPE_CHECKING:
    from culaunch._core import Graph as CoreGraph

_LARGEST = 2**32 - 1
_MOST_CASES = 2**16  # CUDA names no limit


class GraphCondition(int):
    """A number that kernels set, and that controls a conditional node of a graph.

    :meth:`culaunch.Graph.condition` makes it. It is an int: CUDA's handle. Pass it to a kernel
    that has a parameter ``cudaGraphConditionalHandle`` and calls ``cudaGraphSetConditional``. It is
    valid only in kernels of its graph.

    Attributes
    ----------
    graph : Graph
        The graph that it belongs to.
    default : int or None
        The value at the beginning of each launch of the graph; None if a kernel sets it first.

    Examples
    --------
    >>> graph = cl.Graph()
    >>> graph.condition(default=1).default
    1
    """

    graph: Any
    default: int | None

    def __new__(cls, *_: object) -> GraphCondition:
        """Refuse: a graph makes its conditions."""
        raise TypeError("a GraphCondition cannot be created: graph.condition() returns one")

    def __repr__(self) -> str:
        return f"<culaunch.graph.GraphCondition {int(self):#x}, default {self.default}>"


def create_condition(graph: CoreGraph, default: object) -> GraphCondition:
    """Return a new condition of a graph."""
    if default is not None and (isinstance(default, bool) or not isinstance(default, int)):
        raise TypeError(f"default must be an int or None (got {spell(default)})")
    if default is not None and not 0 <= default <= _LARGEST:
        raise ValueError(f"default must be from 0 to {_LARGEST} (got {spell(default)})")
    condition = int.__new__(GraphCondition, graph._create_condition(default))  # noqa: SLF001
    condition.graph = root_of(graph)
    condition.default = default
    return condition


def root_of(graph: Any) -> Any:
    """Return the graph that contains a body, or the graph itself."""
    while graph._owner is not None:  # noqa: SLF001
        graph = graph._owner  # noqa: SLF001
    return graph


def checked_count(count: object) -> int:
    """Return the number of a switch's bodies."""
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"count must be an int (got {spell(count)})")
    if not 1 <= count <= _MOST_CASES:
        raise ValueError(f"count must be from 1 to {_MOST_CASES} (got {spell(count)})")
    return count


class Conditional:
    """The call that adds a conditional node. The node keeps it, with the bodies."""

    def __init__(self, graph: Any, kind: ConditionalType, labels: tuple[str, ...]) -> None:
        self._graph, self._kind, self.labels = graph, kind, labels
        self._condition: GraphCondition | None = None
        self.bodies: tuple[Any, ...] = ()

    @property
    def title(self) -> str:
        """The text of the node in a drawing."""
        if self._kind == ConditionalType.SWITCH:
            return f"switch of {len(self.labels)}"
        return ", ".join(self.labels)

    def __call__(self, condition: GraphCondition) -> None:
        if not isinstance(condition, GraphCondition):
            raise TypeError(f"condition must be a GraphCondition (got {spell(condition)})")
        if self._condition is not None and condition is not self._condition:
            raise ValueError(
                "condition must stay the same in an update of a conditional node (got "
                f"{spell(condition)}): update the nodes of its bodies, or record a new graph"
            )
        if condition.graph is not root_of(self._graph):
            raise ValueError(
                f"condition must be one of this graph (got {spell(condition)} of another): create "
                "it with graph.condition()"
            )
        take_conditional(
            self._graph._driver,  # noqa: SLF001
            condition,
            self._kind,
            len(self.labels),
        )
        self._condition = condition
