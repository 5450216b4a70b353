"""Captures: the work of a stream becomes nodes of a graph, and does not run."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

from culaunch._base.cuda import GraphNodeType, LaunchAttribute, Result
from culaunch._emulator.driver.graph_nodes import (
    CopyParams,
    ExecutableGraph,
    FillParams,
    HostParams,
    KernelNode,
    Node,
)
from culaunch._emulator.driver.state import DEFAULT_STREAMS, Refusal
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.libcuda.graph_memory import AllocationParams, GraphMemoryFunctions
from culaunch._emulator.libcuda.linking import LinkFunctions
from culaunch._emulator.libcuda.pools import PoolFunctions

_SET_DEPENDENCIES = 1  # CU_STREAM_SET_CAPTURE_DEPENDENCIES
_ORDERS_ITSELF = LaunchAttribute.PROGRAMMATIC_STREAM_SERIALIZATION


class _Capture:
    """A graph that is captured, and for each stream the nodes that its next node waits for."""

    numbers = itertools.count(1)

    def __init__(self, graph: int, origin: int, before: list[int]) -> None:
        self.graph = graph
        self.number = next(self.numbers)
        self.origin = origin
        self.last: dict[int, list[int]] = {origin: before}


class CaptureFunctions(GraphMemoryFunctions, PoolFunctions, LinkFunctions):
    """The functions of captures, and those whose work a stream may capture."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._captures: list[_Capture] = []
        # The nodes that an event stands for since it was recorded in a capture.
        self._events: dict[int, tuple[_Capture, list[int]]] = {}

    @takes("p i")
    def cuStreamBeginCapture_v2(self, stream: int | None, mode: int) -> None:
        graph = (ctypes.c_void_p * 1)()
        self.cuGraphCreate(graph, 0)
        self.cuStreamBeginCaptureToGraph(stream, graph[0] or 0, None, 0, 0, mode)

    @takes("p p *p p z i")
    def cuStreamBeginCaptureToGraph(
        self, stream: int | None, graph: int, before: Any, edges: int, count: int, mode: int
    ) -> None:
        self.require_stream(stream)
        self.require_context()
        if stream in DEFAULT_STREAMS or stream is None or self._capture(stream):
            raise Refusal(
                Result.STREAM_CAPTURE_UNSUPPORTED, "a default stream, or one that captures already"
            )
        self._captures.append(_Capture(graph, stream, before[:count] if count else []))

    @takes("p *p")
    def cuStreamEndCapture(self, stream: int, out: Any) -> None:
        capture = self._capture(stream)
        if capture is None or stream != capture.origin:
            raise Refusal(Result.INVALID_VALUE, "no capture began in this stream")
        self._captures.remove(capture)
        self._events = {event: at for event, at in self._events.items() if at[0] is not capture}
        if out:
            out[0] = capture.graph

    def cuStreamIsCapturing(self, stream: int, out: Any) -> None:
        super().cuStreamIsCapturing(stream, out)
        out[0] = int(self._capture(stream) is not None)

    @takes("p *i *q")
    def cuStreamGetCaptureInfo(self, stream: int, status: Any, number: Any) -> None:
        self.cuStreamIsCapturing(stream, status)
        capture = self._capture(stream)
        if capture and number:
            number[0] = capture.number

    @takes("p *i *q *p *p *z")
    def cuStreamGetCaptureInfo_v2(
        self, stream: int, status: Any, number: Any, graph: Any, before: Any, count: Any
    ) -> None:
        self.cuStreamGetCaptureInfo(stream, status, number)
        capture = self._capture(stream)
        if capture is None:
            return
        nodes = capture.last[stream]
        self._shown = (ctypes.c_void_p * max(1, len(nodes)))(*nodes)  # until the next call
        values = (capture.graph, ctypes.addressof(self._shown), len(nodes))
        for out, value in zip((graph, before, count), values, strict=True):
            if out:
                out[0] = value

    @takes("p *i *q *p *p *p *z")
    def cuStreamGetCaptureInfo_v3(self, stream: int, *given: Any) -> None:
        status, number, graph, before, edges, count = given
        self.cuStreamGetCaptureInfo_v2(stream, status, number, graph, before, count)
        if edges:
            edges[0] = None

    @takes("p *p p z u")
    def cuStreamUpdateCaptureDependencies_v2(
        self, stream: int, nodes: Any, edges: int, count: int, flags: int
    ) -> None:
        capture = self._capture(stream)
        if capture is None:
            raise Refusal(Result.INVALID_VALUE, "the stream captures nothing")
        kept = [] if flags & _SET_DEPENDENCIES else capture.last[stream]
        capture.last[stream] = [*dict.fromkeys((*kept, *(nodes[:count] if count else [])))]

    def _capture(self, stream: int | None) -> _Capture | None:
        return next((one for one in self._captures if stream in one.last), None)

    def _captured(self, stream: int | None, kind: GraphNodeType, params: Any) -> bool:
        return self._added(stream, lambda before: Node(kind, before, params))

    def _added(self, stream: int | None, node: Any) -> bool:
        """Add a node to the capture of a stream; false if the stream captures nothing."""
        capture = self._capture(stream)
        if capture is None or stream is None:
            return False
        out = [0]
        self._add(out, capture.graph, node(capture.last[stream]))
        capture.last[stream] = out
        return True

    # -- the order of streams

    def cuEventRecord(self, event: int, stream: int) -> None:
        super().cuEventRecord(event, stream)
        capture = self._capture(stream)
        self._events.pop(event, None)
        if capture:
            self._events[event] = capture, capture.last[stream]

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        super().cuStreamWaitEvent(stream, event, flags)
        if event in self._events:
            capture, nodes = self._events[event]
            before = capture.last.get(stream, [])
            capture.last[stream] = [*dict.fromkeys((*before, *nodes))]

    def cuStreamSynchronize(self, stream: int) -> None:
        super().cuStreamSynchronize(stream)
        self._refuse_capture(stream)

    @takes("p p p u")
    def cuStreamAddCallback(self, stream: int | None, call: int, data: int, flags: int) -> None:
        self._refuse_capture(stream)
        super().cuStreamAddCallback(stream, call, data, flags)

    def _refuse_capture(self, stream: int | None) -> None:
        if self._capture(stream):
            raise Refusal(
                Result.STREAM_CAPTURE_UNSUPPORTED,
                "the stream captures a graph: end the capture, and launch the graph",
            )

    # -- work

    def launch_kernel(self, config: Any, kernel: Any, values: bytes, arrays: Any) -> None:
        def node(before: list[int]) -> KernelNode:
            own = KernelNode(before)
            handle = next(one for one in self.kernels.values() if self._handles[one] is kernel)
            own.set(config, handle, kernel, values, arrays)
            given = config.attributes[: config.attribute_count] if config.attribute_count else []
            own.attributes = {one.id: bytes(one)[8:] for one in given if one.id != _ORDERS_ITSELF}
            return own

        if not self._added(config.stream, node):
            super().launch_kernel(config, kernel, values, arrays)

    def cuGraphLaunch(self, executable: int, stream: int) -> None:
        graph: ExecutableGraph = self.get(executable, ExecutableGraph)
        if not self._captured(stream, GraphNodeType.GRAPH, (0, graph)):
            super().cuGraphLaunch(executable, stream)

    @takes("p p p")
    def cuLaunchHostFunc(self, stream: int, function: int, data: int) -> None:
        if not self._captured(stream, GraphNodeType.HOST, HostParams(function, data)):
            super().cuLaunchHostFunc(stream, function, data)

    def cuMemAllocAsync(self, out: Any, size: int, stream: int) -> None:
        params = AllocationParams(size=size)
        if self._added(stream, lambda before: self.allocation(before, params)):
            out[0] = params.address
        else:
            super().cuMemAllocAsync(out, size, stream)

    def cuMemFreeAsync(self, address: int, stream: int) -> None:
        if not self._captured(stream, GraphNodeType.MEM_FREE, address):
            super().cuMemFreeAsync(address, stream)

    def cuMemcpyAsync(self, target: int, source: int, size: int, stream: int) -> None:
        if not self._copied(target, source, size, stream):
            super().cuMemcpyAsync(target, source, size, stream)

    def cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        if not self._copied(target, source, size, stream):
            super().cuMemcpyHtoDAsync(target, source, size, stream)

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> None:
        if not self._copied(target, source, size, stream):
            super().cuMemcpyDtoHAsync(target, source, size, stream)

    @takes("q q z p")
    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        if not self._copied(target, source, size, stream):
            super().cuMemcpyDtoDAsync(target, source, size, stream)

    def _copied(self, target: int, source: int, size: int, stream: int) -> bool:
        copy = CopyParams.of_bytes(target, source, size)
        return self._captured(stream, GraphNodeType.MEMCPY, copy)

    def cuMemcpy3DAsync(self, copy: int, stream: int) -> None:
        own = CopyParams.from_buffer_copy(ctypes.string_at(copy, ctypes.sizeof(CopyParams)))
        if not self._captured(stream, GraphNodeType.MEMCPY, own):
            super().cuMemcpy3DAsync(copy, stream)

    def cuMemsetD8Async(self, target: int, value: int, size: int, stream: int) -> None:
        if not self._filled(target, value, 1, size, stream):
            super().cuMemsetD8Async(target, value, size, stream)

    def cuMemsetD16Async(self, target: int, value: int, count: int, stream: int) -> None:
        if not self._filled(target, value, 2, count, stream):
            super().cuMemsetD16Async(target, value, count, stream)

    def cuMemsetD32Async(self, target: int, value: int, count: int, stream: int) -> None:
        if not self._filled(target, value, 4, count, stream):
            super().cuMemsetD32Async(target, value, count, stream)

    def _filled(self, target: int, value: int, size: int, count: int, stream: int) -> bool:
        fill = FillParams(target, 0, value, size, count, 1)
        return self._captured(stream, GraphNodeType.MEMSET, fill)
