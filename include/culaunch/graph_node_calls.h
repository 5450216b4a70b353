// The driver's functions for a node of a graph, by its type.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "driver.h"
#include "graph_node.h"
#include "guard.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// `ordinal` is the device of the graph. A function that the driver lacks is not supported.
class GraphNodeCalls {
 public:
  static constexpr CUresult kUnsupported = CUDA_ERROR_NOT_SUPPORTED;

  template <class Function, class... Arguments>
  static CUresult Ask(Function function, Arguments... arguments) noexcept {
    return function == nullptr ? kUnsupported : function(arguments...);
  }

  static CUresult Add(Driver& driver, int ordinal, CUgraph graph, GraphNode& node,
                      const CUgraphNode* after, size_t count) noexcept {
    CUcontext context = nullptr;
    const CUresult code = driver.PrimaryContext(ordinal, &context);
    if (code != CUDA_SUCCESS) return code;
    switch (node.type) {
      case CU_GRAPH_NODE_TYPE_KERNEL: {
        const CUDA_KERNEL_NODE_PARAMS params = node.KernelParams();
        return Ask(driver.cuGraphAddKernelNode, &node.handle, graph, after, count, &params);
      }
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        return Ask(driver.cuGraphAddMemcpyNode, &node.handle, graph, after, count, &node.copy,
                   context);
      case CU_GRAPH_NODE_TYPE_MEMSET:
        return Ask(driver.cuGraphAddMemsetNode, &node.handle, graph, after, count, &node.fill,
                   context);
      case CU_GRAPH_NODE_TYPE_HOST:
        return Ask(driver.cuGraphAddHostNode, &node.handle, graph, after, count, &node.host);
      case CU_GRAPH_NODE_TYPE_GRAPH:
        return Ask(driver.cuGraphAddChildGraphNode, &node.handle, graph, after, count, node.child);
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return Ask(driver.cuGraphAddEventRecordNode, &node.handle, graph, after, count, node.event);
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return Ask(driver.cuGraphAddEventWaitNode, &node.handle, graph, after, count, node.event);
      case CU_GRAPH_NODE_TYPE_EMPTY:
        return Ask(driver.cuGraphAddEmptyNode, &node.handle, graph, after, count);
      case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
        CUgraphNodeParams params = {};
        params.type = node.type;
        params.conditional = node.conditional;
        params.conditional.ctx = context;
        const CUresult added = Ask(driver.cuGraphAddNode_v2, &node.handle, graph, after,
                                   static_cast<const CUgraphEdgeData*>(nullptr), count, &params);
        node.conditional = params.conditional;
        return added;
      }
      default:
        return kUnsupported;
    }
  }

  // Give a node of an executable graph its current parameters. A context must be current for a
  // kernel: see AnyContextGuard.
  static CUresult SetInExecutable(Driver& driver, int ordinal, CUgraphExec executable,
                                  GraphNode& node) noexcept {
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      const CUDA_KERNEL_NODE_PARAMS params = node.KernelParams();
      return driver.cuGraphExecKernelNodeSetParams(executable, node.handle, &params);
    }
    const DeviceGuard guard(driver, ordinal);
    CUcontext context = nullptr;
    CUresult code = guard.code();
    if (code == CUDA_SUCCESS) code = driver.PrimaryContext(ordinal, &context);
    if (code != CUDA_SUCCESS) return code;
    switch (node.type) {
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        return Ask(driver.cuGraphExecMemcpyNodeSetParams, executable, node.handle, &node.copy,
                   context);
      case CU_GRAPH_NODE_TYPE_MEMSET:
        return Ask(driver.cuGraphExecMemsetNodeSetParams, executable, node.handle, &node.fill,
                   context);
      case CU_GRAPH_NODE_TYPE_HOST:
        return Ask(driver.cuGraphExecHostNodeSetParams, executable, node.handle, &node.host);
      case CU_GRAPH_NODE_TYPE_GRAPH:
        return Ask(driver.cuGraphExecChildGraphNodeSetParams, executable, node.handle, node.child);
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return Ask(driver.cuGraphExecEventRecordNodeSetEvent, executable, node.handle, node.event);
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return Ask(driver.cuGraphExecEventWaitNodeSetEvent, executable, node.handle, node.event);
      default:
        return CUDA_SUCCESS;
    }
  }

  // The same for the node of the graph itself.
  static CUresult Set(Driver& driver, int ordinal, GraphNode& node) noexcept {
    if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      const AnyContextGuard any(driver, ordinal);
      const CUDA_KERNEL_NODE_PARAMS params = node.KernelParams();
      return driver.cuGraphKernelNodeSetParams(node.handle, &params);
    }
    CUcontext context = nullptr;
    const CUresult code = driver.PrimaryContext(ordinal, &context);
    if (code != CUDA_SUCCESS) return code;
    CUgraphNodeParams params = {};
    params.type = node.type;
    if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
      params.memcpy.copyCtx = context;
      params.memcpy.copyParams = node.copy;
    } else if (node.type == CU_GRAPH_NODE_TYPE_MEMSET) {
      params.memset.dst = node.fill.dst;
      params.memset.pitch = node.fill.pitch;
      params.memset.value = node.fill.value;
      params.memset.elementSize = node.fill.elementSize;
      params.memset.width = node.fill.width;
      params.memset.height = node.fill.height;
      params.memset.ctx = context;
    } else if (node.type == CU_GRAPH_NODE_TYPE_HOST) {
      params.host.fn = node.host.fn;
      params.host.userData = node.host.userData;
    } else if (node.type == CU_GRAPH_NODE_TYPE_GRAPH) {
      params.graph.graph = node.child;
    } else if (node.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
      params.eventRecord.event = node.event;
    } else if (node.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
      params.eventWait.event = node.event;
    }
    return Ask(driver.cuGraphNodeSetParams, node.handle, &params);
  }
};

CULAUNCH_NAMESPACE_END
