// culaunch::GraphNode: the record that a culaunch::Graph keeps of one of its nodes.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "driver_table.h"
#include "parameter.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

class Graph;

struct GraphNode {
  CUgraphNode handle = nullptr;
  CUgraphNodeType type;
  std::vector<size_t> after;  // the nodes that it waits for, by their numbers
  int ordinal = -1;           // the device that it is for; -1: not known
  // Only the executable graph has the current parameters; the graph itself is out of date.
  bool is_stale = false;
  bool is_enabled = true;  // in the executable graph

  // For a kernel: the launch, as in GraphLaunch, with the bytes of its arguments.
  std::shared_ptr<const std::atomic<bool>> is_loaded;
  CUkernel kernel_handle = nullptr;
  CUfunction function = nullptr;
  std::string name;
  CUlaunchConfig config = {};  // its attributes are set once, and kept below
  std::vector<CUlaunchAttribute> attributes;
  std::vector<Parameter> parameters;
  std::vector<unsigned char> bytes;
  std::vector<void*> arguments;  // into bytes

  // For other types of nodes.
  CUDA_MEMCPY3D copy = {};
  CUDA_MEMSET_NODE_PARAMS fill = {};
  CUDA_HOST_NODE_PARAMS host = {};
  CUevent event = nullptr;
  CUgraph child = nullptr;                // read when the node is added or set
  std::shared_ptr<CUgraph_st> own_child;  // the same, if only the executable graph has it
  // The modules of a child's kernels, with the name of each kernel.
  struct Module {
    std::shared_ptr<const std::atomic<bool>> is_loaded;
    std::string kernel;
  };
  std::vector<Module> modules;
  // For a condition: its parameters, and the graphs that it runs or not.
  CUDA_CONDITIONAL_NODE_PARAMS conditional = {};
  std::vector<std::shared_ptr<Graph>> bodies;
  uint32_t child_kinds = 0;  // a bit for each type of node in a child

  static constexpr uint32_t KindOf(CUgraphNodeType type) noexcept { return uint32_t{1} << type; }
  uint32_t Kinds() const noexcept { return KindOf(type) | child_kinds; }

  explicit GraphNode(CUgraphNodeType own_type = CU_GRAPH_NODE_TYPE_EMPTY) : type(own_type) {}

  // Whether the modules of its kernels are loaded; true for a node that has none.
  bool IsLoaded() const noexcept { return UnloadedKernel() == nullptr; }
  // The name of a kernel whose module was unloaded, or null.
  const std::string* UnloadedKernel() const noexcept {
    if (is_loaded != nullptr && !is_loaded->load(std::memory_order_acquire)) return &name;
    for (const Module& one : modules) {
      if (!one.is_loaded->load(std::memory_order_acquire)) return &one.kernel;
    }
    return nullptr;
  }

  // Where a copy reads or writes: memory of devices, or of the host.
  struct Place {
    void* address;
    bool is_host;
  };
  static std::unique_ptr<GraphNode> Copy(int ordinal, Place to, Place from, size_t bytes) {
    auto node = std::make_unique<GraphNode>(CU_GRAPH_NODE_TYPE_MEMCPY);
    node->ordinal = ordinal;
    CUDA_MEMCPY3D& copy = node->copy;
    copy.srcMemoryType = from.is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = to.is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.srcHost = from.is_host ? from.address : nullptr;
    copy.dstHost = to.is_host ? to.address : nullptr;
    copy.srcDevice = from.is_host ? 0 : reinterpret_cast<CUdeviceptr>(from.address);
    copy.dstDevice = to.is_host ? 0 : reinterpret_cast<CUdeviceptr>(to.address);
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return node;
  }

  // Rows of elements of 1, 2 or 4 bytes; `pitch`, in bytes, tells rows apart.
  static std::unique_ptr<GraphNode> Fill(int ordinal, CUdeviceptr to, unsigned value,
                                         unsigned element, size_t width, size_t height = 1,
                                         size_t pitch = 0) {
    auto node = std::make_unique<GraphNode>(CU_GRAPH_NODE_TYPE_MEMSET);
    node->ordinal = ordinal;
    node->fill.dst = to;
    node->fill.value = value;
    node->fill.elementSize = element;
    node->fill.width = width;
    node->fill.height = height;
    node->fill.pitch = pitch;
    return node;
  }

  static std::unique_ptr<GraphNode> Event(CUgraphNodeType record_or_wait, CUevent event) {
    auto node = std::make_unique<GraphNode>(record_or_wait);
    node->event = event;
    return node;
  }

  static std::unique_ptr<GraphNode> Conditional(CUgraphConditionalHandle condition,
                                                CUgraphConditionalNodeType type, unsigned bodies) {
    auto node = std::make_unique<GraphNode>(CU_GRAPH_NODE_TYPE_CONDITIONAL);
    node->conditional = {condition, type, bodies, nullptr, nullptr};
    return node;
  }

  CUDA_KERNEL_NODE_PARAMS KernelParams() {
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = function;
    params.gridDimX = config.gridDimX;
    params.gridDimY = config.gridDimY;
    params.gridDimZ = config.gridDimZ;
    params.blockDimX = config.blockDimX;
    params.blockDimY = config.blockDimY;
    params.blockDimZ = config.blockDimZ;
    params.sharedMemBytes = config.sharedMemBytes;
    params.kernelParams = arguments.data();
    return params;
  }

  // Take the arguments of a launch; whether any of them is another than before.
  bool TakeArguments(void** values) noexcept {
    bool is_changed = false;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (std::memcmp(arguments[i], values[i], parameters[i].size) == 0) continue;
      std::memcpy(arguments[i], values[i], parameters[i].size);
      is_changed = true;
    }
    return is_changed;
  }

  void MakeRoom(const std::vector<Parameter>& all) {
    parameters = all;
    bytes.assign(all.empty() ? 0 : all.back().offset + all.back().size, 0);
    for (const Parameter& one : all) arguments.push_back(bytes.data() + one.offset);
  }
};

CULAUNCH_NAMESPACE_END
