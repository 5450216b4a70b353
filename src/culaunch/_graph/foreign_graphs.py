"""Graphs of other libraries, and captures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._core import begin_capture, end_capture
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.devices.stream_handle import stream_handle

if TYPE_CHECKING:
    from collections.abc import Callable


def handle_of(other: object) -> int:
    """Return the ``CUgraph`` of an object."""
    given: Any = other
    raw = getattr(given, "raw_cuda_graph", None)  # torch.cuda.CUDAGraph
    if callable(raw):
        given = raw()
    elif not isinstance(given, int):
        given = getattr(given, "handle", None)
        if given is not None:  # from cuda.core: cuda.bindings' CUgraph, or a number
            given = int(given)
    if isinstance(given, bool) or not isinstance(given, int) or given <= 0:
        raise TypeError(
            "other must be a CUgraph as an int, a torch.cuda.CUDAGraph(keep_graph=True), or an "
            f"object with handle (got {spell(other)})"
        )
    return given


class Capture:
    """The capture of a stream, which :meth:`culaunch.Graph.capture` makes.

    Attributes
    ----------
    graph : Graph
        The captured graph; None before the end of the block.
    """

    def __init__(self, adopt: Callable[[int], Any], stream: object) -> None:
        self._adopt = adopt
        self._driver = current_driver()
        self._stream = stream_handle(stream)
        self.graph: Any = None

    def __enter__(self) -> Capture:
        begin_capture(self._driver, self._stream)
        return self

    def __exit__(self, *exception: object) -> None:
        handle = end_capture(self._driver, self._stream)
        if exception[0] is None:
            self.graph = self._adopt(handle)
