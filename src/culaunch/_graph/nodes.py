"""The nodes of graphs: calls, copies, fills, events, host functions and other graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_list, checked_text
from culaunch._base.values import spell
from culaunch._core import Graph, GraphNode, take_child, take_empty, take_host
from culaunch._graph.memory import copy_between, fill_array
from culaunch._launch.devices.event import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class WithNodes(Graph):
    """The methods of a graph that add nodes."""

    def call(
        self,
        callable: Callable[..., object],  # noqa: A002
        /,
        *args: Any,
        after: GraphNode | Iterable[GraphNode] | None = None,
        name: str | None = None,
        **keywords: Any,
    ) -> GraphNode:
        """Add the launches of one call, and return their node.

        Parameters
        ----------
        callable : callable
            Any callable that launches through culaunch, such as ``kernel[grid, block]``, a
            :func:`culaunch.function`, or a Triton kernel with its grid.
        *args, **keywords
            The arguments of the call.
        after : GraphNode or iterable of these, optional
            The nodes to wait for; ``()`` means none. By default all nodes that were added before.
        name : str, optional
            A name for :meth:`update` and the drawings.

        Returns
        -------
        GraphNode
            The node of the call.

        Raises
        ------
        TypeError, ValueError, OverflowError
            If an argument is invalid, or the call launches nothing.
        LaunchError
            If a launch is not possible.

        Examples
        --------
        >>> first = graph.call(kernel[1, 256], y, x, 2.0, 256, name="scale")  # doctest: +SKIP
        >>> graph.call(kernel[1, 256], z, x, 3.0, 256, after=())  # doctest: +SKIP
        """
        return self._add(callable, args, after, name, keywords)

    def copy(
        self,
        target: Any,
        source: Any,
        *,
        after: GraphNode | Iterable[GraphNode] | None = None,
        name: str | None = None,
    ) -> GraphNode:
        """Add a copy between two arrays with the same number of bytes, on the device or the host.

        Parameters
        ----------
        target, source : array
            Two arrays in C order. Host memory is read and written when the graph runs. Memory of
            :func:`culaunch.pinned` needs no staging.
        after, name
            The same as for :meth:`call`.

        Returns
        -------
        GraphNode
            The new node.
        """
        return self._add(copy_between(self._driver), (target, source), after, name)

    def fill(
        self,
        array: Any,
        value: Any,
        *,
        after: GraphNode | Iterable[GraphNode] | None = None,
        name: str | None = None,
    ) -> GraphNode:
        """Add a node that sets every element of a :class:`culaunch.DeviceArray` to a value.

        Parameters
        ----------
        array : DeviceArray
            The array.
        value : number
            The new value of every element.
        after, name
            The same as for :meth:`call`.

        Returns
        -------
        GraphNode
            The new node.
        """
        return self._add(fill_array, (array, value), after, name)

    def host(
        self,
        function: Callable[[], object],
        *,
        after: GraphNode | Iterable[GraphNode] | None = None,
        name: str | None = None,
    ) -> GraphNode:
        """Add a Python callable without arguments. A thread of the driver calls it.

        The callable must not call CUDA. Its exceptions are printed and ignored.

        Parameters
        ----------
        function : callable
            The callable.
        after, name
            The same as for :meth:`call`.

        Returns
        -------
        GraphNode
            The new node.

        Raises
        ------
        TypeError
            If `function` is not callable.
        """
        if not callable(function):
            raise TypeError(f"function must be callable (got {spell(function)})")
        return self._add(_Take(take_host, self._driver), (function,), after, name)

    def graph(
        self,
        child: Graph,
        *,
        after: GraphNode | Iterable[GraphNode] | None = None,
        name: str | None = None,
    ) -> GraphNode:
        """Add a copy of another graph as one node.

        Parameters
        ----------
        child : Graph
            The other graph.
        after, name
            The same as for :meth:`call`.

        Returns
        -------
        GraphNode
            The new node.
        """
        return self._add(_Take(_take_graph, self._driver), (child,), after, name)

    def record(
        self,
        event: Event,
        *,
        after: GraphNode | Iterable[GraphNode] | None = None,
        name: str | None = None,
    ) -> GraphNode:
        """Add the record of an event, which completes when the nodes before it have run.

        Parameters
        ----------
        event : Event
            The event.
        after, name
            The same as for :meth:`call`.

        Returns
        -------
        GraphNode
            The new node.
        """
        return self._event(_record, event, after, name)

    def wait(
        self,
        event: Event,
        *,
        after: GraphNode | Iterable[GraphNode] | None = None,
        name: str | None = None,
    ) -> GraphNode:
        """Add a wait for an event that is recorded elsewhere.

        Parameters
        ----------
        event : Event
            The event.
        after, name
            The same as for :meth:`call`.

        Returns
        -------
        GraphNode
            The new node.
        """
        return self._event(_wait, event, after, name)

    def join(
        self, after: Iterable[GraphNode] | None = None, *, name: str | None = None
    ) -> GraphNode:
        """Add an empty node that waits for several others. Later nodes can wait for it.

        Parameters
        ----------
        after, name
            The same as for :meth:`call`.

        Returns
        -------
        GraphNode
            The new node.
        """
        return self._add(_Take(take_empty, self._driver), (), after, name)

    def _event(self, take: Any, event: Any, after: Any, name: str | None) -> GraphNode:
        if not isinstance(event, Event):
            raise TypeError(f"event must be a culaunch.Event (got {spell(event)})")
        return self._add(take, (event,), after, name)

    def _numbers(self, after: GraphNode | Iterable[GraphNode] | None) -> tuple[int, ...] | None:
        if after is None:
            return None
        nodes = (after,) if isinstance(after, GraphNode) else checked_list("after", after, "nodes")
        numbers = []
        for node in nodes:
            if not isinstance(node, GraphNode) or node.graph is not self:
                raise TypeError(
                    "after must be a node of this graph, or a list of such nodes (got "
                    f"{spell(node)})"
                )
            first, count = node._range  # noqa: SLF001
            numbers.append(first + count - 1)
        return tuple(numbers)

    def _add(
        self,
        take: Callable[..., object],
        args: tuple[Any, ...],
        after: Any,
        name: str | None,
        keywords: dict[str, Any] | None = None,
    ) -> GraphNode:
        if not callable(take):
            raise TypeError(f"callable must be callable (got {spell(take)})")
        if name is not None:
            checked_text("name", name)
        return self._call(take, args, keywords or {}, self._numbers(after), name)[0]


class _Take:
    """A function of the extension that adds a node, with its driver."""

    def __init__(self, take: Callable[..., None], driver: Any) -> None:
        self._take, self._driver = take, driver

    def __call__(self, *args: Any) -> None:
        self._take(self._driver, *args)


def _take_graph(driver: Any, child: Graph) -> None:
    if not isinstance(child, WithNodes):
        raise TypeError(f"child must be a culaunch.Graph (got {spell(child)})")
    take_child(driver, child)


def _record(event: Event) -> None:
    event._driver.event_record(event.device, event.handle, 0)  # noqa: SLF001
    event.is_recorded = True


def _wait(event: Event) -> None:
    event._driver.stream_wait_event(event.device, 0, event.handle, 0)  # noqa: SLF001
