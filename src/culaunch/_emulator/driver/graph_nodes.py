"""The nodes of graphs of the emulated driver, and the structures of cuda.h that describe them."""

from __future__ import annotations

import copy
import ctypes
from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import GraphNodeType
from culaunch._emulator.driver.c_types import LaunchAttribute, LaunchConfig
from culaunch._emulator.driver.state import Kernel, Refusal
from culaunch._emulator.fault import INVALID_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._emulator.driver.state import Arrays

_UNIFIED = 4  # CU_MEMORYTYPE_UNIFIED


class KernelNodeParams(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS``."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("params", ctypes.POINTER(ctypes.c_void_p)),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class CopySide(ctypes.Structure):
    """One side of a ``CUDA_MEMCPY3D``."""

    _fields_ = (
        ("x", ctypes.c_size_t),
        ("y", ctypes.c_size_t),
        ("z", ctypes.c_size_t),
        ("level", ctypes.c_size_t),
        ("memory_type", ctypes.c_uint),
        ("host", ctypes.c_void_p),
        ("device", ctypes.c_ulonglong),
        ("array", ctypes.c_void_p),
        ("reserved", ctypes.c_void_p),
        ("pitch", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )

    def row(self, y: int, z: int) -> int:
        """Return the address of a row of the copy."""
        base = (self.host if self.memory_type == 1 else self.device) or 0
        return int(base + self.x + self.pitch * (y + self.y + (z + self.z) * self.height))


class CopyParams(ctypes.Structure):
    """``CUDA_MEMCPY3D``."""

    _fields_ = (
        ("source", CopySide),
        ("target", CopySide),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
    )

    @classmethod
    def of_bytes(cls, target: int, source: int, size: int) -> CopyParams:
        """Return a copy of bytes, whose addresses may be of the host."""
        copy = cls(width=size, height=1, depth=1)
        for side, address in ((copy.target, target), (copy.source, source)):
            side.memory_type, side.device = _UNIFIED, address
        return copy


class FillParams(ctypes.Structure):
    """``CUDA_MEMSET_NODE_PARAMS``."""

    _fields_ = (
        ("target", ctypes.c_ulonglong),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint),
        ("size", ctypes.c_uint),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class HostParams(ctypes.Structure):
    """``CUDA_HOST_NODE_PARAMS``."""

    _fields_ = (("function", ctypes.c_void_p), ("data", ctypes.c_void_p))


class NodeParams(ctypes.Structure):
    """``CUgraphNodeParams``: a type, and a union, where a copy has its context first."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
        ("rest", ctypes.c_ulonglong * 30),
    )

    COPY = 32  # the offsets of the parameters of a copy, and of other nodes
    OTHERS = 16


class Node:
    """A node: its type, its dependencies, and its operation."""

    def __init__(self, kind: GraphNodeType, dependencies: list[int], params: Any = None) -> None:
        self.kind = kind
        self.dependencies = dependencies
        self.is_enabled = True
        # For a copy, a fill or a host function: its structure. For an event: its handle. For a
        # graph: the handle, and the executable part. For an allocation: its structure, and the
        # memory. For a node that frees: the address.
        self.params = params

    def copied(self) -> Node:
        """Return a separate node, for an executable graph."""
        return copy.copy(self)


class KernelNode(Node):
    """A launch, with the bytes of its parameters and the arrays that were reported for it."""

    def __init__(self, dependencies: list[int]) -> None:
        super().__init__(GraphNodeType.KERNEL, dependencies)
        self.attributes: dict[int, bytes] = {}
        self.handle = 0
        self.arrays: Arrays
        self.values = b""
        # A graph's node has the last setting of the executable graph's node.
        self.told: KernelNode | None = None

    def set(
        self, params: KernelNodeParams, handle: int, kernel: Kernel, values: bytes, arrays: Arrays
    ) -> None:
        """Set the launch of the node."""
        if 0 in (*params.grid, *params.block):
            raise Refusal(INVALID_VALUE, "a dimension of the grid or the block is 0")
        self.handle, self.kernel, self.values, self.arrays = handle, kernel, values, arrays
        self.grid, self.block = tuple(params.grid), tuple(params.block)
        self.shared = params.shared

    def config(self) -> LaunchConfig:
        """Return how it is launched."""
        attributes = (LaunchAttribute * max(1, len(self.attributes)))()
        for one, (number, value) in zip(attributes, self.attributes.items(), strict=False):
            one.id = number
            one.value[:] = value
        config = LaunchConfig(
            grid=self.grid, block=self.block, shared=self.shared, attributes=attributes
        )
        config.attribute_count = len(self.attributes)
        return config

    def show(self, out: Any) -> None:
        """Write its launch to a structure; the pointers stay valid until it is set again."""
        parameters = self.kernel.info.params
        self._shown = ctypes.create_string_buffer(self.values, max(1, len(self.values)))
        base = ctypes.addressof(self._shown)
        self._pointers = (ctypes.c_void_p * max(1, len(parameters)))(
            *(base + parameter.offset for parameter in parameters)
        )
        out.function, out.kernel, out.extra, out.context = self.handle, None, None, None
        out.grid[:], out.block[:], out.shared = self.grid, self.block, self.shared
        out.params = ctypes.cast(self._pointers, ctypes.POINTER(ctypes.c_void_p))


class Graph:
    """A graph: its nodes by their handles, in the order in which they were added."""

    def __init__(self, root: Graph | None = None) -> None:
        self.nodes: dict[int, Node] = {}
        # The graph that a body is in, at any depth. It has the conditions of all its nodes: the
        # default value by the handle, or None.
        self.root = root or self
        self.conditions: dict[int, int | None] = {}
        self.used_conditions: set[int] = set()

    def order(self) -> list[int]:
        """Return the nodes, each after those that it waits for."""
        order: dict[int, None] = {}
        while len(order) < len(self.nodes):
            ready = [
                handle
                for handle, node in self.nodes.items()
                if handle not in order and order.keys() >= set(node.dependencies)
            ]
            if not ready:
                raise Refusal(INVALID_VALUE, "the dependencies of the graph form a cycle")
            order.update(dict.fromkeys(ready))
        return list(order)

    def edges(self) -> Iterable[tuple[int, int]]:
        """Yield pairs of nodes: the second waits for the first."""
        for handle, node in self.nodes.items():
            for dependency in node.dependencies:
                yield dependency, handle


class ExecutableGraph:
    """A copy of a graph at instantiation; its nodes keep the handles of that graph."""

    def __init__(self, graph: Graph) -> None:
        self.flags = 0
        self.order = graph.order()
        self.conditions = graph.conditions
        self.graph = graph
        self.nodes = {handle: node.copied() for handle, node in graph.nodes.items()}
