"""The runtime's functions for graphs whose nodes name kernels and copies in its own structures."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._base.cuda import GraphNodeType, Result
from culaunch._emulator.driver.graph_nodes import CopyParams, KernelNodeParams, NodeParams
from culaunch._emulator.libcuda.binaries import BinaryFunctions
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.libcuda.runtime_array_types import Copy3D
from culaunch._emulator.libcuda.runtime_arrays import RuntimeArrayFunctions


class _RuntimeKernelNodeParams(ctypes.Structure):
    """``cudaKernelNodeParams``: the start of the driver's structure."""

    _fields_ = KernelNodeParams._fields_[:-2]


class RuntimeGraphFunctions(BinaryFunctions, RuntimeArrayFunctions):
    """The functions ``cudaGraph...``. All others are the driver's (``passed_on``)."""

    @takes("*p p *p z p")
    def cudaGraphAddKernelNode(self, out: Any, graph: int, *given: Any) -> None:
        dependencies, count, params = given
        own = self._kernel_params(params)
        self.cuGraphAddKernelNode(out, graph, dependencies, count, ctypes.addressof(own))

    @takes("p p p")
    def cudaGraphExecKernelNodeSetParams(self, executable: int, node: int, params: int) -> None:
        own = self._kernel_params(params)
        self.cuGraphExecKernelNodeSetParams(executable, node, ctypes.addressof(own))

    @takes("p p")
    def cudaGraphKernelNodeSetParams(self, node: int, params: int) -> None:
        own = self._kernel_params(params)
        self.cuGraphKernelNodeSetParams(node, ctypes.addressof(own))

    def _kernel_params(self, address: int) -> KernelNodeParams:
        own = KernelNodeParams()
        ctypes.memmove(ctypes.addressof(own), address, ctypes.sizeof(_RuntimeKernelNodeParams))
        # NVIDIA's runtime takes any other address for a handle here.
        own.function = self._kernel_of(own.function, Result.INVALID_HANDLE)
        return own

    @takes("*p p *p z p")
    def cudaGraphAddMemcpyNode(self, out: Any, graph: int, *given: Any) -> None:
        dependencies, count, params = given
        own = self.driver_copy(Copy3D.from_address(params))
        self.cuGraphAddMemcpyNode(out, graph, dependencies, count, ctypes.addressof(own), 0)

    @takes("*p p *p z p p z i")
    def cudaGraphAddMemcpyNode1D(self, out: Any, graph: int, *given: Any) -> None:
        dependencies, count, target, source, size, _ = given
        own = CopyParams.of_bytes(target, source, size)
        self.cuGraphAddMemcpyNode(out, graph, dependencies, count, ctypes.addressof(own), 0)

    @takes("*p p *p p z p")
    def cudaGraphAddNode(self, out: Any, graph: int, *given: Any) -> None:
        dependencies, edges, count, params = given
        kind = NodeParams.from_address(params).kind
        where = out, graph, dependencies, count
        if kind == GraphNodeType.KERNEL:
            self.cudaGraphAddKernelNode(*where, params + NodeParams.OTHERS)
        elif kind == GraphNodeType.MEMCPY:
            self.cudaGraphAddMemcpyNode(*where, params + NodeParams.COPY)
        else:
            self.cuGraphAddNode_v2(out, graph, dependencies, edges, count, params)

    @takes("*z p u u")
    def cudaGraphConditionalHandleCreate(self, out: Any, graph: int, *given: int) -> None:
        self.cuGraphConditionalHandleCreate(out, graph, 0, *given)

    @takes("*z p p u u")
    def cudaGraphConditionalHandleCreate_v2(self, *given: Any) -> None:
        self.cuGraphConditionalHandleCreate(*given)
