// Executable graphs: each kernel node that runs is a launch, and a line of the log as any other.
#include <cstring>

#include "graphs.h"

namespace fake {
namespace {

CUresult RunGraph(CUgraph graph, CUstream stream);

CUresult RunCopy(const CUDA_MEMCPY3D& copy) {
  const bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool to_host = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
  const auto* from = static_cast<const char*>(
      from_host ? copy.srcHost : reinterpret_cast<const void*>(copy.srcDevice));
  auto* to = static_cast<char*>(to_host ? copy.dstHost : reinterpret_cast<void*>(copy.dstDevice));
  for (size_t z = 0; z < copy.Depth; ++z) {
    for (size_t y = 0; y < copy.Height; ++y) {
      std::memcpy(to + copy.dstXInBytes + copy.dstPitch * (y + copy.dstY + z * copy.dstHeight),
                  from + copy.srcXInBytes + copy.srcPitch * (y + copy.srcY + z * copy.srcHeight),
                  copy.WidthInBytes);
    }
  }
  return CUDA_SUCCESS;
}

CUresult RunFill(const CUDA_MEMSET_NODE_PARAMS& fill) {
  for (size_t row = 0; row < fill.height; ++row) {
    auto* to = reinterpret_cast<char*>(fill.dst + row * fill.pitch);
    for (size_t i = 0; i < fill.width; ++i) {
      std::memcpy(to + i * fill.elementSize, &fill.value, fill.elementSize);
    }
  }
  return CUDA_SUCCESS;
}

// A loop takes one turn, because no kernel ends it.
CUresult RunConditional(CUgraphNode node, CUstream stream) {
  const unsigned value = DefaultOf(node->conditional.handle);
  const bool is_switch = node->conditional.type == CU_GRAPH_COND_TYPE_SWITCH;
  const size_t body = is_switch ? value : (value != 0 ? 0 : 1);
  return body < node->bodies.size() ? RunGraph(node->bodies[body], stream) : CUDA_SUCCESS;
}

CUresult RunNode(CUgraphNode node, CUstream stream) {
  if (!node->is_enabled) return CUDA_SUCCESS;
  switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUlaunchConfig config = node->config;
      config.hStream = stream;
      config.attrs = node->attributes.data();
      config.numAttrs = static_cast<unsigned>(node->attributes.size());
      // In the context of the node, whatever the stream's is.
      return LaunchIn(node->context, config, HandleOf(node->function), node->pointers.data());
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return RunCopy(node->copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return RunFill(node->fill);
    case CU_GRAPH_NODE_TYPE_HOST:
      node->host.fn(node->host.userData);
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return RunGraph(node->child, stream);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return cuEventRecord(node->event, stream);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return RunConditional(node, stream);
    default:
      return CUDA_SUCCESS;
  }
}

CUresult RunGraph(CUgraph graph, CUstream stream) {
  std::vector<CUgraphNode> order;
  if (!Order(graph, &order)) return CUDA_ERROR_INVALID_VALUE;
  for (CUgraphNode node : order) {
    const CUresult code = RunNode(node, stream);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUgraphNode InExec(CUgraphExec exec, CUgraphNode node) {
  const auto found = exec->nodes.find(node);
  return found != exec->nodes.end() ? found->second.get() : nullptr;
}

// As cuda.h says of cuGraphNodeSetEnabled.
bool CanBeDisabled(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
         type == CU_GRAPH_NODE_TYPE_MEMSET;
}

}  // namespace
}  // namespace fake

using fake::Lock;

extern "C" {

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  const Lock lock(fake::mutex);
  auto made = std::make_unique<CUgraphExec_st>();
  if (!fake::Order(graph, &made->order)) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& node : graph->nodes) made->nodes[node.get()] = fake::CopyOf(*node);
  *exec = made.release();
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const CUresult code = cuGraphInstantiate(exec, graph, params->flags);
  params->hErrNode_out = nullptr;
  params->result_out = code == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                                            : CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  return code;
}

CUresult cuGraphUpload(CUgraphExec, CUstream) { return CUDA_SUCCESS; }

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  const Lock lock(fake::mutex);
  if (fake::Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (fake::IsCapturing(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  CUresult code = CUDA_SUCCESS;
  for (CUgraphNode node : exec->order) {
    code = fake::RunNode(fake::InExec(exec, node), stream);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  const Lock lock(fake::mutex);
  for (const auto& [node, own] : exec->nodes) fake::DestroyGraphsOf(*own);
  delete exec;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  const Lock lock(fake::mutex);
  *info = {};
  std::vector<CUgraphNode> order;
  bool is_same = fake::Order(graph, &order) && order.size() == exec->order.size();
  for (size_t i = 0; is_same && i < order.size(); ++i) {
    is_same = order[i]->type == fake::InExec(exec, exec->order[i])->type;
  }
  if (!is_same) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  for (size_t i = 0; i < order.size(); ++i) {
    auto& own = exec->nodes[exec->order[i]];
    const bool is_enabled = own->is_enabled;
    fake::DestroyGraphsOf(*own);
    own = fake::CopyOf(*order[i]);
    own->is_enabled = is_enabled;
  }
  info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS* params) {
  const Lock lock(fake::mutex);
  // libcuda crashes in a thread without one (580.159).
  if (fake::Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CUgraphNode own = fake::InExec(exec, node);
  if (own == nullptr || own->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  if (fake::ContextOfNode(*params) != own->context) return CUDA_ERROR_INVALID_VALUE;
  return fake::SetKernel(own, *params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* params, CUcontext) {
  CUgraphNode own = fake::InExec(exec, node);
  if (own == nullptr) return CUDA_ERROR_INVALID_VALUE;
  own->copy = *params;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  CUgraphNode own = fake::InExec(exec, node);
  if (own == nullptr) return CUDA_ERROR_INVALID_VALUE;
  own->fill = *params;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* params) {
  CUgraphNode own = fake::InExec(exec, node);
  if (own == nullptr) return CUDA_ERROR_INVALID_VALUE;
  own->host = *params;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  CUgraphNode own = fake::InExec(exec, node);
  if (own == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuGraphDestroy(own->child);
  return cuGraphClone(&own->child, child);
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  CUgraphNode own = fake::InExec(exec, node);
  if (own == nullptr) return CUDA_ERROR_INVALID_VALUE;
  own->event = event;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return cuGraphExecEventRecordNodeSetEvent(exec, node, event);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned is_enabled) {
  CUgraphNode own = fake::InExec(exec, node);
  if (own == nullptr || !fake::CanBeDisabled(own->type)) return CUDA_ERROR_INVALID_VALUE;
  own->is_enabled = is_enabled != 0;
  return CUDA_SUCCESS;
}

}  // extern "C"
