"""The emulated driver's functions for graphs, whose nodes run one after another."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from culaunch._base.cuda import CAN_BE_DISABLED, ConditionalType, GraphNodeType, LaunchAttribute
from culaunch._emulator.driver.conditional_nodes import (
    ConditionalNode,
    ConditionalParams,
    conditional_nodes,
    require_complete,
    require_no_conditions,
)
from culaunch._emulator.driver.graph_nodes import (
    CopyParams,
    ExecutableGraph,
    FillParams,
    Graph,
    HostParams,
    KernelNode,
    KernelNodeParams,
    Node,
    NodeParams,
)
from culaunch._emulator.driver.launch_config import parameter_bytes
from culaunch._emulator.driver.modules import ModuleFunctions
from culaunch._emulator.driver.state import Kernel, Refusal
from culaunch._emulator.driver.streams import Event, StreamFunctions
from culaunch._emulator.driver.textures import TextureFunctions
from culaunch._emulator.fault import INVALID_VALUE, NOT_SUPPORTED

_ASSIGN_DEFAULT = 1  # CU_GRAPH_COND_ASSIGN_DEFAULT
_HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class GraphFunctions(ModuleFunctions, TextureFunctions, StreamFunctions):
    """The functions ``cuGraph...``. Streams capture nothing.

    The arrays that are noted before a kernel node is added or set are that node's, as those noted
    before a launch are the launch's.
    """

    def cuStreamIsCapturing(self, stream: int, out: Any) -> None:
        self.require_stream(stream)
        out[0] = 0

    def cuGraphCreate(self, out: Any, flags: int) -> None:
        out[0] = self.add(Graph())

    def cuGraphDestroy(self, graph: int) -> None:
        found = self._graph(graph)
        for node in conditional_nodes(found):
            for handle, body in zip(node.handles(), node.graphs, strict=True):
                for inner in body.nodes:
                    self.remove(inner)
                self.remove(handle)
        for handle in found.nodes:
            self.remove(handle)
        self.remove(graph)

    def cuGraphClone(self, out: Any, graph: int) -> None:
        require_no_conditions(self._graph(graph), "cloned")
        clone, new = Graph(), {}
        for handle, node in self._graph(graph).nodes.items():
            copied = node.copied()
            new[handle] = self.add(copied)
            clone.nodes[new[handle]] = copied
        for node in clone.nodes.values():
            node.dependencies = [new[one] for one in node.dependencies]
        out[0] = self.add(clone)

    def _graph(self, handle: int) -> Graph:
        graph: Graph = self.get(handle, Graph)
        return graph

    # -- nodes

    def cuGraphAddKernelNode(
        self, out: Any, graph: int, dependencies: Any, count: int, params: int
    ) -> None:
        node = KernelNode(dependencies[:count] if count else [])
        self._set_kernel(node, params)
        self._add(out, graph, node)

    def cuGraphAddMemcpyNode(
        self, out: Any, graph: int, dependencies: Any, count: int, params: int, context: int
    ) -> None:
        own = _copied(params, CopyParams)
        self._add_plain(out, graph, dependencies, count, GraphNodeType.MEMCPY, own)

    def cuGraphAddMemsetNode(
        self, out: Any, graph: int, dependencies: Any, count: int, params: int, context: int
    ) -> None:
        own = _copied(params, FillParams)
        self._add_plain(out, graph, dependencies, count, GraphNodeType.MEMSET, own)

    def cuGraphAddHostNode(
        self, out: Any, graph: int, dependencies: Any, count: int, params: int
    ) -> None:
        own = _copied(params, HostParams)
        self._add_plain(out, graph, dependencies, count, GraphNodeType.HOST, own)

    def cuGraphAddChildGraphNode(
        self, out: Any, graph: int, dependencies: Any, count: int, child: int
    ) -> None:
        require_no_conditions(self._graph(child), "a node of another graph")
        run = ExecutableGraph(self._graph(child))
        self._add_plain(out, graph, dependencies, count, GraphNodeType.GRAPH, (child, run))

    def cuGraphAddEmptyNode(self, out: Any, graph: int, dependencies: Any, count: int) -> None:
        self._add_plain(out, graph, dependencies, count, GraphNodeType.EMPTY, None)

    def cuGraphAddEventRecordNode(
        self, out: Any, graph: int, dependencies: Any, count: int, event: int
    ) -> None:
        self.get(event, Event)
        self._add_plain(out, graph, dependencies, count, GraphNodeType.EVENT_RECORD, event)

    def cuGraphAddEventWaitNode(
        self, out: Any, graph: int, dependencies: Any, count: int, event: int
    ) -> None:
        self.get(event, Event)
        self._add_plain(out, graph, dependencies, count, GraphNodeType.WAIT_EVENT, event)

    def cuGraphConditionalHandleCreate(
        self, out: Any, graph: int, context: int, value: int, flags: int
    ) -> None:
        handle = self.add(object())  # a value of this launch, which is not destroyed
        self._graph(graph).conditions[handle] = value if flags & _ASSIGN_DEFAULT else None
        out[0] = handle

    def cuGraphAddNode_v2(
        self, out: Any, graph: int, dependencies: Any, edges: int, count: int, params: int
    ) -> None:
        kind = _at(params, NodeParams).kind
        if kind != GraphNodeType.CONDITIONAL:
            self._add_of_kind(kind, params, out, graph, dependencies, count)
            return
        given = ConditionalParams.from_address(params + NodeParams.OTHERS)
        before = dependencies[:count] if count else []
        node = ConditionalNode(before, given, self._graph(graph).root)
        self._add(out, graph, node)
        given.bodies = node.show_graphs([self.add(body) for body in node.graphs])

    def _add_of_kind(self, kind: int, params: int, *where: Any) -> None:
        own, copy = params + NodeParams.OTHERS, params + NodeParams.COPY
        handle = ctypes.c_void_p.from_address(own).value or 0
        adders: dict[int, tuple[Any, tuple[int, ...]]] = {
            GraphNodeType.KERNEL: (self.cuGraphAddKernelNode, (own,)),
            GraphNodeType.MEMCPY: (self.cuGraphAddMemcpyNode, (copy, 0)),
            GraphNodeType.MEMSET: (self.cuGraphAddMemsetNode, (own, 0)),
            GraphNodeType.HOST: (self.cuGraphAddHostNode, (own,)),
            GraphNodeType.GRAPH: (self.cuGraphAddChildGraphNode, (handle,)),
            GraphNodeType.EMPTY: (self.cuGraphAddEmptyNode, ()),
            GraphNodeType.WAIT_EVENT: (self.cuGraphAddEventWaitNode, (handle,)),
            GraphNodeType.EVENT_RECORD: (self.cuGraphAddEventRecordNode, (handle,)),
        }
        if kind not in adders:
            raise Refusal(NOT_SUPPORTED, f"nodes of type {kind} are not emulated")
        add, given = adders[kind]
        add(*where, *given)

    def cuGraphAddDependencies_v2(
        self, graph: int, first: Any, second: Any, edges: Any, count: int
    ) -> None:
        for i in range(count):
            node = self._graph(graph).nodes[second[i]]
            node.dependencies = [*node.dependencies, first[i]]

    def cuGraphDestroyNode(self, node: int) -> None:
        self.get(node, Node)
        for graph in self.all(Graph):
            graph.nodes.pop(node, None)
            for one in graph.nodes.values():
                one.dependencies = [before for before in one.dependencies if before != node]
        self.remove(node)

    def _add_plain(
        self, out: Any, graph: int, dependencies: Any, count: int, kind: GraphNodeType, params: Any
    ) -> None:
        self._add(out, graph, Node(kind, dependencies[:count] if count else [], params))

    def _add(self, out: Any, graph: int, node: Node) -> None:
        nodes = self._graph(graph).nodes
        for one in node.dependencies:
            if one not in nodes:
                raise Refusal(INVALID_VALUE, f"{one or 0:#x} is not a node of the graph")
        handle = self.add(node)
        out[0] = handle
        nodes[handle] = node

    def _set_kernel(self, node: KernelNode, address: int, told: KernelNode | None = None) -> None:
        arrays = self.noted.take()
        # A copy of an executable graph's settings lacks the arrays.
        if told is not None and not (arrays.writable or arrays.read_only):
            arrays = told.arrays
        params = _at(address, KernelNodeParams)
        handle = params.function or params.kernel
        kernel: Kernel = self.get(handle, Kernel)
        node.set(params, handle, kernel, parameter_bytes(kernel, params.params), arrays)

    # -- the contents of a graph

    def cuGraphGetNodes(self, graph: int, out: Any, count: Any) -> None:
        _give(list(self._graph(graph).nodes), count, out)

    def cuGraphGetEdges_v2(
        self, graph: int, first: Any, second: Any, data: int, count: Any
    ) -> None:
        edges = list(self._graph(graph).edges())
        if data:
            ctypes.memset(data, 0, 8 * min(count[0], len(edges)))  # CUgraphEdgeData
        if first:
            for i, (one, _) in enumerate(edges[: count[0]]):
                first[i] = one
        _give([after for _, after in edges], count, second)

    def cuGraphNodeGetType(self, node: int, out: Any) -> None:
        out[0] = self.get(node, Node).kind

    def cuGraphKernelNodeGetParams(self, node: int, out: int) -> None:
        self.get(node, KernelNode).show(_at(out, KernelNodeParams))

    def cuGraphKernelNodeSetParams(self, node: int, params: int) -> None:
        own = self.get(node, KernelNode)
        self._set_kernel(own, params, own.told)

    def cuGraphKernelNodeGetAttribute(self, node: int, attribute: int, out: int) -> None:
        value = self.get(node, KernelNode).attributes.get(attribute, bytes(64))
        ctypes.memmove(out, value, len(value))

    def cuGraphKernelNodeSetAttribute(self, node: int, attribute: int, value: int) -> None:
        if attribute == LaunchAttribute.PROGRAMMATIC_STREAM_SERIALIZATION:
            raise Refusal(
                INVALID_VALUE, "the graph orders its nodes, so a node cannot have this attribute"
            )
        self.get(node, KernelNode).attributes[attribute] = ctypes.string_at(value, 64)

    def cuGraphNodeSetParams(self, node: int, params: int) -> None:
        own: Node = self.get(node, Node)
        if _at(params, NodeParams).kind != own.kind:
            raise Refusal(INVALID_VALUE, "the parameters are for another type of node")
        if own.kind == GraphNodeType.MEMCPY:
            own.params = _copied(params + NodeParams.COPY, CopyParams)
        elif own.kind == GraphNodeType.MEMSET:
            own.params = _copied(params + NodeParams.OTHERS, FillParams)
        elif own.kind == GraphNodeType.HOST:
            own.params = _copied(params + NodeParams.OTHERS, HostParams)
        else:  # the handle of a graph or an event
            handle = ctypes.c_void_p.from_address(params + NodeParams.OTHERS).value or 0
            is_graph = own.kind == GraphNodeType.GRAPH
            own.params = (handle, ExecutableGraph(self._graph(handle))) if is_graph else handle

    def cuGraphMemcpyNodeGetParams(self, node: int, out: int) -> None:
        self._show(node, out)

    def cuGraphMemsetNodeGetParams(self, node: int, out: int) -> None:
        self._show(node, out)

    def cuGraphHostNodeGetParams(self, node: int, out: int) -> None:
        self._show(node, out)

    def _show(self, node: int, out: int) -> None:
        params = self.get(node, Node).params
        ctypes.memmove(out, ctypes.addressof(params), ctypes.sizeof(params))

    def cuGraphChildGraphNodeGetGraph(self, node: int, out: Any) -> None:
        out[0] = self.get(node, Node).params[0]

    def cuGraphEventRecordNodeGetEvent(self, node: int, out: Any) -> None:
        out[0] = self.get(node, Node).params

    def cuGraphEventWaitNodeGetEvent(self, node: int, out: Any) -> None:
        out[0] = self.get(node, Node).params

    def cuGraphDebugDotPrint(self, graph: int, path: bytes, flags: int) -> None:
        nodes = self._graph(graph).nodes
        names = {
            handle: node.kernel.info.name if isinstance(node, KernelNode) else node.kind.name
            for handle, node in nodes.items()
        }
        lines = [f'"{handle:#x}" [label="{name}"];' for handle, name in names.items()]
        lines += [f'"{one:#x}" -> "{after:#x}";' for one, after in self._graph(graph).edges()]
        Path(path.decode()).write_text("digraph {\n" + "\n".join(lines) + "\n}\n")

    # -- executable graphs

    def cuGraphInstantiateWithFlags(self, out: Any, graph: int, flags: int) -> None:
        self.require_context()
        own = self._graph(graph)
        require_complete(own)
        others = (one for one in self.all(ExecutableGraph) if one.graph is own)
        if own.conditions and next(others, None) is not None:
            raise Refusal(INVALID_VALUE, "a graph with conditions has one executable graph")
        out[0] = self.add(ExecutableGraph(own))

    def cuGraphUpload(self, executable: int, stream: int) -> None:
        self.require_stream(stream)
        self.get(executable, ExecutableGraph)

    def cuGraphExecDestroy(self, executable: int) -> None:
        self.get(executable, ExecutableGraph)
        self.remove(executable)

    def cuGraphExecUpdate(self, executable: int, graph: int, info: int) -> None:
        own: ExecutableGraph = self.get(executable, ExecutableGraph)
        require_complete(self._graph(graph))
        other = ExecutableGraph(self._graph(graph))
        if own.order != other.order:
            raise Refusal(INVALID_VALUE, "the graph has other nodes")
        for handle, node in other.nodes.items():
            node.is_enabled = own.nodes[handle].is_enabled
        own.nodes = other.nodes

    def cuGraphExecKernelNodeSetParams(self, executable: int, node: int, params: int) -> None:
        own = self._own(executable, node)
        if not isinstance(own, KernelNode):
            raise Refusal(INVALID_VALUE, f"{node:#x} is not a kernel node")
        self._set_kernel(own, params)
        self.get(node, KernelNode).told = own

    def cuGraphExecMemcpyNodeSetParams(
        self, executable: int, node: int, params: int, context: int
    ) -> None:
        self._own(executable, node).params = _copied(params, CopyParams)

    def cuGraphExecMemsetNodeSetParams(
        self, executable: int, node: int, params: int, context: int
    ) -> None:
        self._own(executable, node).params = _copied(params, FillParams)

    def cuGraphExecHostNodeSetParams(self, executable: int, node: int, params: int) -> None:
        self._own(executable, node).params = _copied(params, HostParams)

    def cuGraphExecChildGraphNodeSetParams(self, executable: int, node: int, child: int) -> None:
        self._own(executable, node).params = (child, ExecutableGraph(self._graph(child)))

    def cuGraphExecEventRecordNodeSetEvent(self, executable: int, node: int, event: int) -> None:
        self.get(event, Event)
        self._own(executable, node).params = event

    def cuGraphExecEventWaitNodeSetEvent(self, executable: int, node: int, event: int) -> None:
        self.cuGraphExecEventRecordNodeSetEvent(executable, node, event)

    def cuGraphNodeSetEnabled(self, executable: int, node: int, is_enabled: int) -> None:
        own = self._own(executable, node)
        if own.kind not in CAN_BE_DISABLED:
            raise Refusal(INVALID_VALUE, f"{node:#x} is not a kernel, a copy or a fill")
        own.is_enabled = bool(is_enabled)

    def _own(self, executable: int, node: int) -> Node:
        nodes: dict[int, Node] = self.get(executable, ExecutableGraph).nodes
        if node not in nodes:
            raise Refusal(INVALID_VALUE, f"{node or 0:#x} is not a node of the graph")
        return nodes[node]

    def cuGraphLaunch(self, executable: int, stream: int) -> None:
        self.require_context_of(stream)
        graph: ExecutableGraph = self.get(executable, ExecutableGraph)
        # A host function of the graph may launch another graph.
        outer, self.device.conditions = self.device.conditions, dict(graph.conditions)
        try:
            self._run(graph, stream)
        finally:
            self.device.conditions = outer

    def _run(self, graph: ExecutableGraph, stream: int) -> None:
        for handle in graph.order:
            node = graph.nodes[handle]
            if node.is_enabled:
                self._run_node(node, stream)

    def _run_node(self, node: Node, stream: int) -> None:
        if isinstance(node, KernelNode):
            # The handle is not enough: the handle of an unloaded module is invalid.
            kernel: Kernel = self.get(node.handle, Kernel)
            self.launch_kernel(node.config(), kernel, node.values, node.arrays)
        elif node.kind == GraphNodeType.MEMCPY:
            self.copy_rows(node.params)
        elif node.kind == GraphNodeType.MEMSET:
            fill = node.params
            value = int(fill.value).to_bytes(4, "little")[: fill.size]
            for y in range(fill.height):
                ctypes.memmove(
                    fill.target + y * fill.pitch, value * fill.width, fill.size * fill.width
                )
        elif node.kind == GraphNodeType.HOST:
            _HOST(node.params.function)(node.params.data)
        elif node.kind == GraphNodeType.GRAPH:
            self._run(node.params[1], stream)
        elif node.kind == GraphNodeType.EVENT_RECORD:
            self.cuEventRecord(node.params, stream)
        elif isinstance(node, ConditionalNode):
            while (body := node.choose(self._value(node.condition))) is not None:
                self._run(body, stream)
                if node.type != ConditionalType.WHILE:
                    break

    def _value(self, condition: int) -> int:
        value = self.device.conditions[condition]
        if value is None:
            raise Refusal(
                INVALID_VALUE, "a condition without a default was not set before its node ran"
            )
        return value


def _at(address: int, kind: Any) -> Any:
    if not address:
        raise Refusal(INVALID_VALUE, f"no {kind.__name__} at address 0")
    return kind.from_address(address)


def _copied(address: int, kind: Any) -> Any:
    return kind.from_buffer_copy(_at(address, kind))


def _give(handles: list[int], count: Any, out: Any) -> None:
    """Write as many as there is room for; without room, how many there are."""
    if out:
        for i in range(count[0]):
            out[i] = handles[i] if i < len(handles) else None
        count[0] = min(count[0], len(handles))
    else:
        count[0] = len(handles)
