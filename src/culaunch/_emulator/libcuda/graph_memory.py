"""Memory that graphs allocate and free: nodes, whose addresses are known when they are added."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._base.cuda import GraphNodeType
from culaunch._emulator.driver.graph_nodes import ExecutableGraph, Graph, Node, NodeParams
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._emulator.fault import INVALID_VALUE, NOT_SUPPORTED
from culaunch._emulator.libcuda.c_function import takes

_AUTO_FREE = 1  # CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH


class AllocationParams(ctypes.Structure):
    """``CUDA_MEM_ALLOC_NODE_PARAMS``; the pool's properties are accepted and kept."""

    _fields_ = (
        ("pool", ctypes.c_ubyte * 88),
        ("access", ctypes.c_void_p),
        ("access_count", ctypes.c_size_t),
        ("size", ctypes.c_size_t),
        ("address", ctypes.c_ulonglong),
    )


class GraphMemoryFunctions(EmulatedDriver):
    """The functions for nodes that allocate or free.

    The memory of a node is reserved while the node or the memory is in use, so its address never
    changes. Kernels and copies may use it only between the two nodes, or until a call frees it.
    """

    @takes("*p p *p z p")
    def cuGraphAddMemAllocNode(
        self, out: Any, graph: int, dependencies: Any, count: int, params: int
    ) -> None:
        own = AllocationParams.from_buffer_copy(
            ctypes.string_at(params, ctypes.sizeof(AllocationParams))
        )
        node = self.allocation(dependencies[:count] if count else [], own)
        self._add(out, graph, node)
        AllocationParams.from_address(params).address = own.address

    def allocation(self, before: list[int], params: AllocationParams) -> Node:
        """Return a node that allocates, and complete its parameters with the address."""
        if not params.size:
            raise Refusal(INVALID_VALUE, "an allocation of 0 bytes")
        memory = self.device.reserve(params.size)
        params.address = memory.address
        return Node(GraphNodeType.MEM_ALLOC, before, (params, memory))

    @takes("p p")
    def cuGraphMemAllocNodeGetParams(self, node: int, out: int) -> None:
        params = self.get(node, Node).params[0]
        ctypes.memmove(out, ctypes.addressof(params), ctypes.sizeof(params))

    @takes("*p p *p z q")
    def cuGraphAddMemFreeNode(
        self, out: Any, graph: int, dependencies: Any, count: int, address: int
    ) -> None:
        before = dependencies[:count] if count else []
        self._add(out, graph, Node(GraphNodeType.MEM_FREE, before, address))

    @takes("p *q")
    def cuGraphMemFreeNodeGetParams(self, node: int, out: Any) -> None:
        out[0] = self.get(node, Node).params

    def _add_of_kind(self, kind: int, params: int, *where: Any) -> None:
        own = params + NodeParams.OTHERS
        graph: tuple[Any, int, Any, int] = where
        if kind == GraphNodeType.MEM_ALLOC:
            self.cuGraphAddMemAllocNode(*graph, own)
        elif kind == GraphNodeType.MEM_FREE:
            self.cuGraphAddMemFreeNode(*graph, ctypes.c_ulonglong.from_address(own).value)
        else:
            super()._add_of_kind(kind, params, *where)

    def _run_node(self, node: Node, stream: int) -> None:
        if node.kind == GraphNodeType.MEM_ALLOC:
            if self.device.has(node.params[1].address):
                raise Refusal(
                    INVALID_VALUE,
                    "the memory of the graph's last launch is not freed: free it, or instantiate "
                    "the graph with CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH",
                )
            self.device.commit(node.params[1])
        elif node.kind == GraphNodeType.MEM_FREE:
            self.cuMemFree(node.params)
        else:
            super()._run_node(node, stream)

    # -- graphs with such nodes

    def cuGraphInstantiateWithFlags(self, out: Any, graph: int, flags: int) -> None:
        own: Graph = self.get(graph, Graph)
        if _allocates(own) and any(one.graph is own for one in self.all(ExecutableGraph)):
            raise Refusal(NOT_SUPPORTED, "a graph with memory nodes has one executable graph")
        super().cuGraphInstantiateWithFlags(out, graph, flags)
        self.get(out[0], ExecutableGraph).flags = flags

    def cuGraphLaunch(self, executable: int, stream: int) -> None:
        graph: ExecutableGraph = self.get(executable, ExecutableGraph)
        if graph.flags & _AUTO_FREE:
            for node in graph.nodes.values():
                is_used = node.kind == GraphNodeType.MEM_ALLOC and self.device.has(
                    node.params[1].address
                )
                if is_used:
                    self.cuMemFree(node.params[1].address)
        super().cuGraphLaunch(executable, stream)

    def cuGraphClone(self, out: Any, graph: int) -> None:
        self._refuse_memory(graph, "cloned")
        super().cuGraphClone(out, graph)

    def cuGraphAddChildGraphNode(
        self, out: Any, graph: int, dependencies: Any, count: int, child: int
    ) -> None:
        self._refuse_memory(child, "a node of another graph")
        super().cuGraphAddChildGraphNode(out, graph, dependencies, count, child)

    def _refuse_memory(self, graph: int, doing: str) -> None:
        if _allocates(self._graph(graph)):
            raise Refusal(NOT_SUPPORTED, f"a graph with memory nodes cannot be {doing}")

    @takes("i")
    def cuDeviceGraphMemTrim(self, device: int) -> None:
        self.require_device(device)


def _allocates(graph: Graph) -> bool:
    kinds = (GraphNodeType.MEM_ALLOC, GraphNodeType.MEM_FREE)
    return any(node.kind in kinds for node in graph.nodes.values())
