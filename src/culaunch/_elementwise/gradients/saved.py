"""Small values that a forward pass saves, and gradients take instead of reducing again.

A row's mean has one element, and the row has thousands. Gradients that take the mean read the row
once and wait for one reduction less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._elementwise.apply import convert
from culaunch._elementwise.gradients.reverse import Reverse, view
from culaunch._elementwise.graph import ordered
from culaunch._elementwise.reductions.labels import Reduction
from culaunch._elementwise.reductions.regime import memory_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.labels import Label, ShapedTrace

__all__ = ["replaced", "stored", "values_to_save"]


def values_to_save(
    trace: ShapedTrace, results: tuple[Node, ...], arguments: Sequence[Node], first_input: int
) -> tuple[Node, ...]:
    """Return the values that gradients need of a function's reductions.

    Every trace of the function with these types gives the same ones.

    Parameters
    ----------
    trace : ShapedTrace
    results, arguments : sequence of Node
        Arguments without gradients may be among them.
    first_input : int
        A free number for the inputs that stand for gradients.

    Returns
    -------
    tuple of Node
        In the order of their computation. Empty if gradients would still repeat a reduction.
    """
    given: list[Node] = []
    for i, result in enumerate(results):
        node = trace.input(first_input + i, result.dtype)
        trace.dims[node] = trace.of(result)
        given.append(node)
    own = ordered(results)
    small = _small(trace, own)
    reverse = Reverse(trace, results, tuple(given))
    needed = set(ordered(tuple(reverse.of(node) for node in arguments), small))
    if any(node.op == "reduce" for node in needed.intersection(own)):
        return ()
    return tuple(node for node in small if node in needed)


def stored(trace: ShapedTrace, node: Node) -> Node:
    """Return a value as the forward pass returns it: as it was computed, without dropped axes."""
    dims = tuple(label for label in trace.of(node) if label is not None)
    return view(trace, convert(node, memory_dtype(node.dtype), "saved"), dims)


def replaced(
    trace: ShapedTrace, nodes: tuple[Node, ...], saved: dict[Node, Node]
) -> tuple[Node, ...]:
    """Return nodes that take saved values from arrays.

    Parameters
    ----------
    trace : ShapedTrace
    nodes : tuple of Node
    saved : dict of Node to Node
        The array of each saved value.
    """
    made: dict[Node, Node] = {}
    for node, array in saved.items():
        trace.together("backward", (stored(trace, node), array))
        made[node] = convert(view(trace, array, trace.of(node)), node.dtype, "backward")
    for node in ordered(nodes, saved):
        if node in made:
            continue
        args = tuple(made[arg] for arg in node.args)
        if args == node.args:
            made[node] = node
            continue
        made[node] = trace.operation(node.op, node.dtype, args, node.index, node.detail)
        trace.dims[made[node]] = trace.of(node)
    return tuple(made[node] for node in nodes)


def _small(trace: ShapedTrace, nodes: list[Node]) -> dict[Node, None]:
    """Return the values that depend on reductions, and lack the dimensions of the last ones."""
    gone: dict[Node, frozenset[Label]] = {}
    for node in nodes:
        if isinstance(node.detail, Reduction):
            gone[node] = frozenset(label.root() for label in node.detail.labels)
        else:
            gone[node] = frozenset().union(*(gone[arg] for arg in node.args))
    return {
        node: None
        for node, labels in gone.items()
        if labels and node.op != "reduce" and labels.isdisjoint(trace.labels(node))
    }
