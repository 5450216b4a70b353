// Graphs: each kernel node that runs is a launch, and a line of the log as any other.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

#include "internal.h"

struct CUgraphNode_st {
  CUgraphNodeType type;
  std::vector<CUgraphNode> dependencies;
  bool is_enabled = true;
  // For a kernel: its launch configuration, and the bytes of each parameter.
  CUlaunchConfig config = {};
  CUfunction function = nullptr;
  CUcontext context = nullptr;
  std::vector<CUlaunchAttribute> attributes;
  std::vector<std::string> bytes;
  std::vector<void*> pointers;
  CUDA_MEMCPY3D copy = {};
  CUDA_MEMSET_NODE_PARAMS fill = {};
  CUDA_HOST_NODE_PARAMS host = {};
  CUgraph child = nullptr;
  CUevent event = nullptr;
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

struct CUgraphExec_st {
  std::map<CUgraphNode, std::unique_ptr<CUgraphNode_st>> nodes;  // by the node of its graph
  std::vector<CUgraphNode> order;
  CUcontext context = nullptr;
};

namespace fake {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

CUcontext ContextOfNode(const CUDA_KERNEL_NODE_PARAMS& params) {
  if (params.func != nullptr && HandleOf(params.func).context != nullptr) {
    return HandleOf(params.func).context;
  }
  return params.ctx != nullptr ? params.ctx : Current();
}

// Copy a kernel node's parameters, as the driver does.
CUresult SetKernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params) {
  node->function = params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  if (node->function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->context = ContextOfNode(params);
  if (node->context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (params.gridDimX * params.gridDimY * params.gridDimZ == 0) return CUDA_ERROR_INVALID_VALUE;
  node->config.gridDimX = params.gridDimX;
  node->config.gridDimY = params.gridDimY;
  node->config.gridDimZ = params.gridDimZ;
  node->config.blockDimX = params.blockDimX;
  node->config.blockDimY = params.blockDimY;
  node->config.blockDimZ = params.blockDimZ;
  node->config.sharedMemBytes = params.sharedMemBytes;
  node->bytes.clear();
  node->pointers.clear();
  const auto& known = KernelOf(node->function).info.params;
  for (size_t i = 0; i < known.size(); ++i) {
    node->bytes.emplace_back(static_cast<const char*>(params.kernelParams[i]), known[i].size);
  }
  for (std::string& bytes : node->bytes) node->pointers.push_back(bytes.data());
  return CUDA_SUCCESS;
}

CUgraphNode AddNode(CUgraph graph, CUgraphNodeType type, const CUgraphNode* dependencies,
                    size_t count) {
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  CUgraphNode node = graph->nodes.back().get();
  node->type = type;
  node->dependencies.assign(dependencies, dependencies + count);
  return node;
}

// Every node after those that it depends on; false where they go in a circle.
bool Order(CUgraph graph, std::vector<CUgraphNode>* order) {
  std::set<CUgraphNode> placed;
  while (order->size() < graph->nodes.size()) {
    const size_t before = order->size();
    for (const auto& node : graph->nodes) {
      const auto& needed = node->dependencies;
      if (placed.count(node.get()) != 0 ||
          !std::all_of(needed.begin(), needed.end(),
                       [&](CUgraphNode one) { return placed.count(one) != 0; })) {
        continue;
      }
      order->push_back(node.get());
      placed.insert(node.get());
    }
    if (order->size() == before) return false;
  }
  return true;
}

// A copy of a node, whose pointers are to its own bytes.
std::unique_ptr<CUgraphNode_st> CopyOf(const CUgraphNode_st& node) {
  auto copy = std::make_unique<CUgraphNode_st>(node);
  copy->pointers.clear();
  for (std::string& bytes : copy->bytes) copy->pointers.push_back(bytes.data());
  if (node.child != nullptr) cuGraphClone(&copy->child, node.child);
  return copy;
}

CUresult RunGraph(CUgraph graph, CUstream stream);

std::set<CUgraph> graphs;  // that exist

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

// Return the number of all, or fill the room that is given.
template <class T>
CUresult Give(const std::vector<T>& all, T* given, size_t* count) {
  if (given == nullptr) {
    *count = all.size();
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; ++i) given[i] = i < all.size() ? all[i] : T();
  *count = std::min(*count, all.size());
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CaptureKernel(CUgraph graph, CUgraphNode* last, const CUlaunchConfig& config,
                       CUfunction function, void** arguments) {
  const CUDA_KERNEL_NODE_PARAMS params = {
      function,         config.gridDimX,  config.gridDimY,  config.gridDimZ,
      config.blockDimX, config.blockDimY, config.blockDimZ, config.sharedMemBytes,
      arguments,        nullptr,          nullptr,          nullptr};
  CUgraphNode node = AddNode(graph, CU_GRAPH_NODE_TYPE_KERNEL, last, *last != nullptr ? 1 : 0);
  const CUresult code = SetKernel(node, params);
  node->attributes.assign(config.attrs, config.attrs + config.numAttrs);
  *last = node;
  return code;
}

}  // namespace fake

using fake::Lock;

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  const Lock lock(fake::mutex);
  *graph = new CUgraph_st;
  fake::graphs.insert(*graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  const Lock lock(fake::mutex);
  fake::graphs.erase(graph);
  for (const auto& node : graph->nodes) {
    if (node->child != nullptr) cuGraphDestroy(node->child);
  }
  delete graph;
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* clone, CUgraph graph) {
  auto* made = new CUgraph_st;
  std::map<CUgraphNode, CUgraphNode> copies;
  for (const auto& node : graph->nodes) {
    made->nodes.push_back(fake::CopyOf(*node));
    copies[node.get()] = made->nodes.back().get();
  }
  for (const auto& node : made->nodes) {
    for (CUgraphNode& one : node->dependencies) one = copies[one];
  }
  *clone = made;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  const Lock lock(fake::mutex);
  *node = fake::AddNode(graph, CU_GRAPH_NODE_TYPE_KERNEL, dependencies, count);
  const CUresult code = fake::SetKernel(*node, *params);
  if (code != CUDA_SUCCESS) graph->nodes.pop_back();
  return code;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  const CUlaunchConfig& config = node->config;
  *params = {node->function,        config.gridDimX,  config.gridDimY,  config.gridDimZ,
             config.blockDimX,      config.blockDimY, config.blockDimZ, config.sharedMemBytes,
             node->pointers.data(), nullptr,          nullptr,          node->context};
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  const Lock lock(fake::mutex);
  return fake::SetKernel(node, *params);
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                       const CUkernelNodeAttrValue* value) {
  if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) return CUDA_ERROR_INVALID_VALUE;
  for (CUlaunchAttribute& known : node->attributes) {
    if (known.id != id) continue;
    known.value = *value;
    return CUDA_SUCCESS;
  }
  CUlaunchAttribute attribute = {};
  attribute.id = id;
  attribute.value = *value;
  node->attributes.push_back(attribute);
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue* value) {
  *value = {};
  for (const CUlaunchAttribute& known : node->attributes) {
    if (known.id == id) *value = known.value;
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMCPY3D* params, CUcontext) {
  *node = fake::AddNode(graph, CU_GRAPH_NODE_TYPE_MEMCPY, dependencies, count);
  (*node)->copy = *params;
  return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
  *params = node->copy;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  *node = fake::AddNode(graph, CU_GRAPH_NODE_TYPE_MEMSET, dependencies, count);
  (*node)->fill = *params;
  return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
  *params = node->fill;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  *node = fake::AddNode(graph, CU_GRAPH_NODE_TYPE_HOST, dependencies, count);
  (*node)->host = *params;
  return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params) {
  *params = node->host;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUgraph child) {
  *node = fake::AddNode(graph, CU_GRAPH_NODE_TYPE_GRAPH, dependencies, count);
  return cuGraphClone(&(*node)->child, child);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* child) {
  *child = node->child;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count) {
  *node = fake::AddNode(graph, CU_GRAPH_NODE_TYPE_EMPTY, dependencies, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph,
                                   const CUgraphNode* dependencies, size_t count, CUevent event) {
  *node = fake::AddNode(graph, CU_GRAPH_NODE_TYPE_EVENT_RECORD, dependencies, count);
  (*node)->event = event;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, CUevent event) {
  *node = fake::AddNode(graph, CU_GRAPH_NODE_TYPE_WAIT_EVENT, dependencies, count);
  (*node)->event = event;
  return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  *event = node->event;
  return CUDA_SUCCESS;
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  *event = node->event;
  return CUDA_SUCCESS;
}

// Nodes with conditions, allocations and semaphores.
CUresult cuGraphAddNode_v2(CUgraphNode*, CUgraph, const CUgraphNode*, const CUgraphEdgeData*,
                           size_t, CUgraphNodeParams*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle*, CUgraph, CUcontext, unsigned,
                                        unsigned) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuGraphAddDependencies_v2(CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i]->dependencies.push_back(from[i]);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(CUgraphNode node) {
  const Lock lock(fake::mutex);
  for (CUgraph graph : fake::graphs) {
    auto& nodes = graph->nodes;
    for (const auto& one : nodes) {
      auto& needed = one->dependencies;
      needed.erase(std::remove(needed.begin(), needed.end(), node), needed.end());
    }
    nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                               [&](const auto& one) { return one.get() == node; }),
                nodes.end());
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  std::vector<CUgraphNode> all;
  for (const auto& node : graph->nodes) all.push_back(node.get());
  return fake::Give(all, nodes, count);
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* edges, size_t* count) {
  std::vector<CUgraphNode> first, second;
  for (const auto& node : graph->nodes) {
    for (CUgraphNode one : node->dependencies) {
      first.push_back(one);
      second.push_back(node.get());
    }
  }
  if (edges != nullptr) std::memset(edges, 0, *count * sizeof *edges);
  size_t same = *count;
  fake::Give(first, from, &same);
  return fake::Give(second, to, count);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  *type = node->type;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  const Lock lock(fake::mutex);
  if (params->type != node->type) return CUDA_ERROR_INVALID_VALUE;
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      node->copy = params->memcpy.copyParams;
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& fill = params->memset;
      node->fill = {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      node->host = {params->host.fn, params->host.userData};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      cuGraphDestroy(node->child);
      return cuGraphClone(&node->child, params->graph.graph);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      node->event = params->eventRecord.event;
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      node->event = params->eventWait.event;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

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
  for (const auto& [node, own] : exec->nodes) {
    if (own->child != nullptr) cuGraphDestroy(own->child);
  }
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
    exec->nodes[exec->order[i]] = fake::CopyOf(*order[i]);
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
  if (own == nullptr) return CUDA_ERROR_INVALID_VALUE;
  own->is_enabled = is_enabled != 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  std::map<CUgraphNode, size_t> numbers;
  std::fprintf(file, "digraph {\n");
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    CUgraphNode node = graph->nodes[i].get();
    numbers[node] = i;
    const bool is_kernel = node->type == CU_GRAPH_NODE_TYPE_KERNEL;
    std::fprintf(file, "n%zu [label=\"%s\"];\n", i,
                 is_kernel ? fake::KernelOf(node->function).info.name.c_str() : "node");
  }
  for (const auto& node : graph->nodes) {
    for (CUgraphNode one : node->dependencies) {
      std::fprintf(file, "n%zu -> n%zu;\n", numbers[one], numbers[node.get()]);
    }
  }
  std::fprintf(file, "}\n");
  return std::fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // extern "C"
