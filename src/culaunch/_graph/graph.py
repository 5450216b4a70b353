"""The public class of explicit graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_flag
from culaunch._base.cuda import CAN_BE_DISABLED, ConditionalType
from culaunch._base.values import counted, spell
from culaunch._core import Graph as CoreGraph
from culaunch._core import GraphNode
from culaunch._graph.arguments import with_names
from culaunch._graph.conditions import (
    Conditional,
    GraphCondition,
    checked_count,
    create_condition,
)
from culaunch._graph.drawing import KINDS, dot_of, svg_of
from culaunch._graph.foreign_graphs import Capture, handle_of
from culaunch._graph.nodes import WithNodes
from culaunch._launch.devices.driver import current_driver

if TYPE_CHECKING:
    from collections.abc import Iterable


class Graph(WithNodes):
    """A CUDA graph: launches, copies and other work that one call launches together.

    In a ``with`` block, the graph records the launches of this thread through culaunch: launchers,
    functions, Triton kernels under :func:`culaunch.triton.install`, and fills and copies on the
    device. Nothing runs in the block, and each node runs after the one before it. To choose the
    dependencies yourself, use :meth:`call`, which adds one call after the nodes that you name.
    Arguments are checked like those of a launch. The graph keeps the arrays of its calls alive, and
    the memory that functions allocate.

    ``graph.launch(stream)`` launches the graph. Without a stream, it uses the current stream of the
    framework of the first array. ``graph.upload(stream)`` moves the graph to the device before the
    first launch. ``graph.update_all(rows)`` updates all nodes, with a tuple of arguments for each.

    Attributes
    ----------
    nodes : tuple of GraphNode
        One node for each call, in the order of the calls.
    handle : int
        The ``CUgraph`` for other libraries, with the current arguments of its nodes. This object
        owns it.
    executable : int
        The ``CUgraphExec``, which is created when it is needed.
    device : int
        The ordinal of the device of the first node.

    Raises
    ------
    DriverError
        If the driver does not support graphs.

    Examples
    --------
    >>> with cl.Graph() as graph:
    ...     kernel[1, 256](y, x, 2.0, 256)
    ...     kernel[1, 256](y, y, 3.0, 256)
    >>> graph.launch()
    >>> graph.nodes[0].update(y, x, 4.0, 256)
    >>> graph.launch()
    >>> float(y.numpy()[0])
    12.0
    """

    def __new__(cls) -> Graph:
        """Make an empty graph for the driver in use."""
        return super().__new__(cls, current_driver())

    @classmethod
    def from_handle(cls, other: object) -> Graph:
        """Return a copy of another library's graph. You can add nodes to it.

        Parameters
        ----------
        other : int or object
            A ``CUgraph`` as an int, ``torch.cuda.CUDAGraph(keep_graph=True)`` after its capture,
            a graph of ``cuda.core``, or any object with ``handle``.

        Returns
        -------
        Graph
            The copy.

        Raises
        ------
        TypeError
            If `other` is not a graph.
        DriverError
            If the driver refuses it.

        Examples
        --------
        >>> graph = cl.Graph.from_handle(torch_graph)  # doctest: +SKIP
        """
        return CoreGraph.__new__(cls, current_driver(), handle_of(other))

    @classmethod
    def capture(cls, stream: object) -> Capture:
        """Capture the work that any library puts into a stream during a ``with`` block.

        Parameters
        ----------
        stream : int or object
            The stream, which must not be the default stream.

        Returns
        -------
        Capture
            A context manager. After the block, its ``graph`` is the new :class:`Graph`.

        Examples
        --------
        >>> with cl.Graph.capture(torch.cuda.current_stream()) as capture:  # doctest: +SKIP
        ...     y = torch.relu(x)
        >>> capture.graph.launch()  # doctest: +SKIP
        """
        return Capture(
            lambda handle: CoreGraph.__new__(cls, current_driver(), handle, True), stream
        )

    def __enter__(self) -> Graph:
        self._begin()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()

    def condition(self, default: int | None = None) -> GraphCondition:
        """Create a condition, which a kernel sets and a conditional node of this graph reads.

        A kernel sets it by CUDA's device function ``cudaGraphSetConditional(condition, value)``.
        Each condition controls one node, of this graph or of a body in it.

        Parameters
        ----------
        default : int, optional
            The value at the beginning of each launch of the whole graph. Without it, a kernel
            must set the condition before its node runs.

        Returns
        -------
        GraphCondition
            An int for the parameter of the kernel.

        Raises
        ------
        TypeError, ValueError
            If `default` is not an int from 0 to 2**32 - 1.

        Examples
        --------
        >>> graph = cl.Graph()
        >>> again = graph.condition(default=1)
        """
        return create_condition(self, default)

    def if_then(
        self,
        condition: GraphCondition,
        *,
        after: GraphNode | Iterable[GraphNode] | None = None,
        name: str | None = None,
    ) -> GraphBody:
        """Add a node that runs its body unless the condition is 0.

        Parameters
        ----------
        condition : GraphCondition
            A condition of this graph that controls no other node.
        after, name
            The same as for :meth:`call`.

        Returns
        -------
        GraphBody
            The body. Record its work in a ``with`` block, or add its nodes one by one.

        Raises
        ------
        TypeError, ValueError
            If an argument is invalid.

        Examples
        --------
        >>> with graph.if_then(condition):  # doctest: +SKIP
        ...     kernel[1, 256](y, x, 2.0, 256)
        """
        return self._branch(condition, ConditionalType.IF, ("if",), after, name)[0]

    def if_else(
        self,
        condition: GraphCondition,
        *,
        after: GraphNode | Iterable[GraphNode] | None = None,
        name: str | None = None,
    ) -> tuple[GraphBody, GraphBody]:
        """Add a node that runs one of two bodies. The driver must be for CUDA 12.8 or newer.

        Parameters
        ----------
        condition : GraphCondition
            A condition of this graph that controls no other node.
        after, name
            The same as for :meth:`call`.

        Returns
        -------
        tuple of GraphBody
            The body that runs unless the condition is 0, and the body that runs if it is 0.

        Raises
        ------
        TypeError, ValueError
            If an argument is invalid, or the driver is too old.

        Examples
        --------
        >>> then, otherwise = graph.if_else(condition)  # doctest: +SKIP
        >>> with otherwise:  # doctest: +SKIP
        ...     kernel[1, 256](y, x, 2.0, 256)
        """
        first, second = self._branch(condition, ConditionalType.IF, ("if", "else"), after, name)
        return first, second

    def while_loop(
        self,
        condition: GraphCondition,
        *,
        after: GraphNode | Iterable[GraphNode] | None = None,
        name: str | None = None,
    ) -> GraphBody:
        """Add a node that runs its body again and again until the condition is 0.

        Parameters
        ----------
        condition : GraphCondition
            A condition of this graph that controls no other node.
        after, name
            The same as for :meth:`call`.

        Returns
        -------
        GraphBody
            The body, in which a kernel sets the condition.

        Raises
        ------
        TypeError, ValueError
            If an argument is invalid.

        Examples
        --------
        >>> with graph.while_loop(condition):  # doctest: +SKIP
        ...     step[1, 1](condition, x)
        """
        return self._branch(condition, ConditionalType.WHILE, ("while",), after, name)[0]

    def switch(
        self,
        condition: GraphCondition,
        count: int,
        *,
        after: GraphNode | Iterable[GraphNode] | None = None,
        name: str | None = None,
    ) -> tuple[GraphBody, ...]:
        """Add a node that runs the body with the number of the condition, if there is one.

        The driver must be for CUDA 12.8 or newer.

        Parameters
        ----------
        condition : GraphCondition
            A condition of this graph that controls no other node.
        count : int
            The number of bodies.
        after, name
            The same as for :meth:`call`.

        Returns
        -------
        tuple of GraphBody
            One body for each number from 0 on.

        Raises
        ------
        TypeError, ValueError
            If an argument is invalid, or the driver is too old.

        Examples
        --------
        >>> cases = graph.switch(condition, 3)  # doctest: +SKIP
        >>> with cases[2]:  # doctest: +SKIP
        ...     kernel[1, 256](y, x, 2.0, 256)
        """
        labels = tuple(map(str, range(checked_count(count))))
        return self._branch(condition, ConditionalType.SWITCH, labels, after, name)

    def update(self, node: GraphNode | str, /, *args: Any, **named: Any) -> None:
        """Set other arguments of a node for the next launches.

        Parameters
        ----------
        node : GraphNode or str
            The node or its name.
        *args
            All arguments, as in the call. If you pass none, only the arguments in `named` change.
        **named
            Arguments by the names of the parameters. The names of a kernel's parameters come from
            the ``signature=`` of :meth:`culaunch.Module.kernel`.

        Raises
        ------
        KeyError
            If no node has that name.
        TypeError, ValueError, OverflowError
            If an argument is invalid, or the call launches other kernels with these arguments.

        Notes
        -----
        ``node.update(*args)`` does the same without names, and is faster.
        """
        node = self._own(node)
        if named:
            args, named = with_names(node, args, named)
        node.update(*args, **named)

    def enable(self, node: GraphNode | str, is_enabled: bool = True) -> None:
        """Enable a node in the next launches, or make it a no-op.

        Parameters
        ----------
        node : GraphNode or str
            The node or its name.
        is_enabled : bool, optional
            Whether the node runs.

        Raises
        ------
        KeyError
            If no node has that name.
        TypeError
            If `node` is not a node of this graph, or `is_enabled` is neither True nor False.
        ValueError
            If a part of `node` is not a kernel, a copy or a fill. CUDA disables nothing else.
        """
        checked_flag("is_enabled", is_enabled)
        first, count = self._own(node)._range  # noqa: SLF001
        numbers = range(first, first + count)
        for kind in (self._describe(number)[0] for number in numbers):
            if kind not in CAN_BE_DISABLED:
                raise ValueError(
                    "node must consist of kernels, copies and fills to be enabled or disabled (got "
                    f"a node of type {KINDS.get(kind, str(kind))}): CUDA supports no other types"
                )
        for number in numbers:
            self._set_enabled(number, is_enabled)

    def dot(self) -> str:
        r"""Return the graph in Graphviz's language.

        Returns
        -------
        str
            The text, for the program ``dot``.

        Examples
        --------
        >>> print(graph.dot())  # doctest: +SKIP
        digraph {
          0 [label="scale\n(1, 1, 1) x (256, 1, 1)"];
        }
        """
        return dot_of(self)

    def svg(self) -> str:
        """Draw the graph.

        Returns
        -------
        str
            The text of an SVG file.
        """
        return svg_of(self)

    def _repr_svg_(self) -> str:
        return svg_of(self)

    def __len__(self) -> int:
        """Return the number of nodes, as the driver counts them."""
        return self._size

    def __repr__(self) -> str:
        return f"<culaunch.Graph of {counted(self._size, 'node')}>"

    def _branch(
        self,
        condition: GraphCondition,
        kind: ConditionalType,
        labels: tuple[str, ...],
        after: Any,
        name: str | None,
    ) -> tuple[GraphBody, ...]:
        call = Conditional(self, kind, labels)
        node = self._add(call, (condition,), after, name)
        number = node._range[0]  # noqa: SLF001
        indices = range(len(labels))
        call.bodies = tuple(self._body(GraphBody, number, index) for index in indices)
        for body in call.bodies:
            body.node = node
        return call.bodies

    def _own(self, node: object) -> GraphNode:
        """Return a node of this graph, given as such or by its name."""
        if isinstance(node, str):
            return self._named(node)
        if not isinstance(node, GraphNode) or node.graph is not self:
            raise TypeError(f"node must be a node of this graph, or its name (got {spell(node)})")
        return node

    def _named(self, name: str) -> GraphNode:
        found = [node for node in self.nodes if node.name == name]
        if len(found) != 1:
            names = sorted({node.name for node in self.nodes if node.name is not None})
            many = "no node has" if not found else f"{len(found)} nodes have"
            raise KeyError(
                f"{many} the name {spell(name)}: the names are {', '.join(names) or 'none'}"
            )
        return found[0]


class GraphBody(Graph):
    """A graph inside a conditional node, which runs as part of the graph that contains it.

    :meth:`culaunch.Graph.if_then`, :meth:`culaunch.Graph.while_loop` and their like make it. It
    records and adds nodes as a graph does: kernels, copies, fills, joins, graphs, and further
    conditional nodes. CUDA allows no host functions and no events. The body keeps its graph alive.

    Attributes
    ----------
    node : GraphNode
        The conditional node, for ``after=`` in the graph that contains it.

    Examples
    --------
    >>> graph = cl.Graph()
    >>> body = graph.if_then(graph.condition(default=1))
    >>> node = body.call(kernel[1, 256], y, x, 2.0, 256)
    >>> graph.launch()
    >>> float(y.numpy()[0])
    2.0
    """

    node: GraphNode

    def __new__(cls) -> GraphBody:
        """Refuse: a conditional node makes its bodies."""
        raise TypeError("a GraphBody cannot be created: graph.if_then and its like return one")

    def enable(self, node: GraphNode | str, is_enabled: bool = True) -> None:  # noqa: ARG002
        """Refuse: CUDA cannot disable nodes in bodies.

        Parameters
        ----------
        node, is_enabled
            The same as for :meth:`culaunch.Graph.enable`.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError(
            f"node must be outside the bodies of conditional nodes to be enabled or disabled (got "
            f"{spell(node)}): let a condition decide instead"
        )

    def __repr__(self) -> str:
        return f"<culaunch.graph.GraphBody of {counted(self._size, 'node')}>"
