// Graphs: their nodes, and what can be asked of them.
#include "graphs.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

namespace fake {

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

// Every node after those that it depends on; false if they go in a circle.
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

namespace {

std::map<CUgraphConditionalHandle, unsigned> conditions;

CUgraph Clone(CUgraph graph) {
  auto* clone = new CUgraph_st;
  std::map<CUgraphNode, CUgraphNode> copies;
  for (const auto& node : graph->nodes) {
    clone->nodes.push_back(CopyOf(*node));
    copies[node.get()] = clone->nodes.back().get();
  }
  for (const auto& node : clone->nodes) {
    for (CUgraphNode& one : node->dependencies) one = copies[one];
  }
  return clone;
}

bool HasConditions(CUgraph graph) {
  return std::any_of(graph->nodes.begin(), graph->nodes.end(),
                     [](const auto& node) { return node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL; });
}

}  // namespace

unsigned DefaultOf(CUgraphConditionalHandle condition) { return conditions[condition]; }

void DestroyGraphsOf(const CUgraphNode_st& node) {
  if (node.child != nullptr) cuGraphDestroy(node.child);
  for (CUgraph body : node.bodies) cuGraphDestroy(body);
}

// A copy of a node, whose pointers are to its own bytes.
std::unique_ptr<CUgraphNode_st> CopyOf(const CUgraphNode_st& node) {
  auto copy = std::make_unique<CUgraphNode_st>(node);
  copy->pointers.clear();
  for (std::string& bytes : copy->bytes) copy->pointers.push_back(bytes.data());
  if (node.child != nullptr) copy->child = Clone(node.child);
  for (CUgraph& body : copy->bodies) body = Clone(body);
  return copy;
}

namespace {

std::set<CUgraph> graphs;  // that exist

CUgraphNode AddNode(CUgraph graph, CUgraphNodeType type, const CUgraphNode* dependencies,
                    size_t count) {
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  CUgraphNode node = graph->nodes.back().get();
  node->type = type;
  node->dependencies.assign(dependencies, dependencies + count);
  return node;
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
  for (const auto& node : graph->nodes) fake::DestroyGraphsOf(*node);
  delete graph;
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* clone, CUgraph graph) {
  if (fake::HasConditions(graph)) return CUDA_ERROR_INVALID_VALUE;
  *clone = fake::Clone(graph);
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

// Conditions, but no allocations and semaphores.
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  const Lock lock(fake::mutex);
  if (params->type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return CUDA_ERROR_NOT_SUPPORTED;
  if (fake::conditions.count(params->conditional.handle) == 0) return CUDA_ERROR_INVALID_VALUE;
  *node = fake::AddNode(graph, params->type, dependencies, count);
  (*node)->bodies.resize(params->conditional.size);
  for (CUgraph& body : (*node)->bodies) cuGraphCreate(&body, 0);
  params->conditional.phGraph_out = (*node)->bodies.data();
  (*node)->conditional = params->conditional;
  return CUDA_SUCCESS;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph, CUcontext,
                                        unsigned value, unsigned) {
  const Lock lock(fake::mutex);
  *handle = fake::conditions.size() + 1;
  fake::conditions[*handle] = value;
  return CUDA_SUCCESS;
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
