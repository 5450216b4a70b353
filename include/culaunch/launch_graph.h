// culaunch::LaunchGraph: consecutive launches as one executable graph of the driver.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "driver_table.h"
#include "parameter.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// One launch of a graph, with a pointer to each argument. The function is in the primary context of
// the graph's device. The configuration has no attributes, and its stream is not read.
struct GraphLaunch {
  const void* kernel;  // whose it is: see LaunchGraph::Uses
  CUfunction function;
  const CUlaunchConfig& config;
  const std::vector<Parameter>& parameters;
  void** arguments;
};

// Kernel nodes, each after the previous one. It keeps the bytes of every node's arguments and
// updates nodes that changed. It has no lock: use it in one thread at a time. It goes to one
// stream, because a graph does not overlap with itself.
class LaunchGraph {
 public:
  explicit LaunchGraph(DriverTable& driver) noexcept : driver_(driver) {}
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;
  ~LaunchGraph() { Destroy(); }

  // Whether a driver has the functions that graphs need.
  static bool IsPossible(const DriverTable& driver) noexcept {
    return driver.cuGraphCreate != nullptr && driver.cuGraphDestroy != nullptr &&
           driver.cuGraphAddKernelNode != nullptr &&
           driver.cuGraphInstantiateWithFlags != nullptr && driver.cuGraphExecDestroy != nullptr &&
           driver.cuGraphLaunch != nullptr && driver.cuGraphExecKernelNodeSetParams != nullptr &&
           driver.cuStreamIsCapturing != nullptr && driver.cuStreamGetId != nullptr;
  }

  // Append a launch, before the graph is made. These three functions leave a capture on some stream
  // alone only while this thread's capture mode is relaxed.
  CUresult Add(const GraphLaunch& launch) {
    CUresult code = graph_ == nullptr ? driver_.cuGraphCreate(&graph_, 0) : CUDA_SUCCESS;
    if (code != CUDA_SUCCESS) return code;
    Node node = {nullptr, launch.kernel, launch.function, launch.config, bytes_.size()};
    const size_t size = launch.parameters.empty()
                            ? 0
                            : launch.parameters.back().offset + launch.parameters.back().size;
    bytes_.resize(bytes_.size() + size);
    for (size_t i = 0; i < launch.parameters.size(); ++i) {
      const Parameter& parameter = launch.parameters[i];
      std::memcpy(bytes_.data() + node.bytes + parameter.offset, launch.arguments[i],
                  parameter.size);
    }
    const CUDA_KERNEL_NODE_PARAMS params =
        ParamsOf(launch.function, launch.config, launch.arguments);
    const CUgraphNode* before = nodes_.empty() ? nullptr : &nodes_.back().handle;
    code = driver_.cuGraphAddKernelNode(&node.handle, graph_, before, nodes_.size() != 0, &params);
    if (code == CUDA_SUCCESS) nodes_.push_back(node);
    return code;
  }
  CUresult Instantiate() noexcept {
    return driver_.cuGraphInstantiateWithFlags(&executable_, graph_, 0);
  }
  void Destroy() noexcept {
    // Work that is under way is done all the same (driver API, cuGraphExecDestroy).
    if (executable_ != nullptr) driver_.cuGraphExecDestroy(executable_);
    if (graph_ != nullptr) driver_.cuGraphDestroy(graph_);
    executable_ = nullptr;
    graph_ = nullptr;
    nodes_.clear();
    bytes_.clear();
  }

  bool IsMade() const noexcept { return executable_ != nullptr; }
  size_t size() const noexcept { return nodes_.size(); }
  bool Uses(const void* kernel) const noexcept {
    for (const Node& node : nodes_) {
      if (node.kernel == kernel) return true;
    }
    return false;
  }

  // Whether node `index` launches this function: another graph is needed otherwise.
  bool Fits(size_t index, CUfunction function) const noexcept {
    return index < nodes_.size() && nodes_[index].function == function;
  }

  // Use this launch, which fits, at place `index` in the next launch of the graph. The node is
  // updated if something changed, or `always`. After a failure the graph is unusable.
  CUresult Set(size_t index, const GraphLaunch& launch, bool always) noexcept {
    Node& node = nodes_[index];
    bool is_changed = !HasConfig(node.config, launch.config) || always;
    unsigned char* const bytes = bytes_.data() + node.bytes;
    const Parameter* parameter = launch.parameters.data();
    for (size_t i = 0; i < launch.parameters.size(); ++i, ++parameter) {
      is_changed |= Take(bytes + parameter->offset, launch.arguments[i], parameter->size);
    }
    if (!is_changed) return CUDA_SUCCESS;
    node.config = launch.config;
    const CUDA_KERNEL_NODE_PARAMS params =
        ParamsOf(launch.function, launch.config, launch.arguments);
    return driver_.cuGraphExecKernelNodeSetParams(executable_, node.handle, &params);
  }

  // The same for who keeps the bytes of all arguments, and counts their changes. `owner` is whose
  // versions the nodes have; 0: nobody's.
  struct Version {
    uint64_t number;
    const CUlaunchConfig& config;
    const unsigned char* bytes;
    size_t size;
    void** arguments;
  };
  uint64_t owner() const noexcept { return owner_; }
  void set_owner(uint64_t owner) noexcept { owner_ = owner; }
  void Note(size_t index, uint64_t version) noexcept { nodes_[index].version = version; }
  CUresult Refresh(size_t index, const Version& version) noexcept {
    Node& node = nodes_[index];
    if (node.version == version.number) return CUDA_SUCCESS;
    node.version = version.number;
    node.config = version.config;
    std::memcpy(bytes_.data() + node.bytes, version.bytes, version.size);
    const CUDA_KERNEL_NODE_PARAMS params =
        ParamsOf(node.function, version.config, version.arguments);
    return driver_.cuGraphExecKernelNodeSetParams(executable_, node.handle, &params);
  }

  CUresult Launch(CUstream stream) const noexcept {
    return driver_.cuGraphLaunch(executable_, stream);
  }

 private:
  struct Node {
    CUgraphNode handle;
    const void* kernel;
    CUfunction function;
    CUlaunchConfig config;
    size_t bytes;  // where those of its arguments begin
    uint64_t version = 0;
  };

  // Copy a value; whether it is another than before. Nearly all have 8 bytes or 4.
  static bool Take(unsigned char* known, const void* value, size_t size) noexcept {
    if (size == 8) return TakeAs<uint64_t>(known, value);
    if (size == 4) return TakeAs<uint32_t>(known, value);
    if (std::memcmp(known, value, size) == 0) return false;
    std::memcpy(known, value, size);
    return true;
  }
  template <class Word>
  static bool TakeAs(unsigned char* known, const void* value) noexcept {
    Word before;
    Word now;
    std::memcpy(&before, known, sizeof before);
    std::memcpy(&now, value, sizeof now);
    std::memcpy(known, &now, sizeof now);
    return before != now;
  }

  static bool HasConfig(const CUlaunchConfig& a, const CUlaunchConfig& b) noexcept {
    return ((a.gridDimX ^ b.gridDimX) | (a.gridDimY ^ b.gridDimY) | (a.gridDimZ ^ b.gridDimZ) |
            (a.blockDimX ^ b.blockDimX) | (a.blockDimY ^ b.blockDimY) |
            (a.blockDimZ ^ b.blockDimZ) | (a.sharedMemBytes ^ b.sharedMemBytes)) == 0;
  }

  static CUDA_KERNEL_NODE_PARAMS ParamsOf(CUfunction function, const CUlaunchConfig& config,
                                          void** arguments) noexcept {
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = function;
    params.gridDimX = config.gridDimX;
    params.gridDimY = config.gridDimY;
    params.gridDimZ = config.gridDimZ;
    params.blockDimX = config.blockDimX;
    params.blockDimY = config.blockDimY;
    params.blockDimZ = config.blockDimZ;
    params.sharedMemBytes = config.sharedMemBytes;
    params.kernelParams = arguments;
    return params;
  }

  DriverTable& driver_;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
  std::vector<Node> nodes_;
  std::vector<unsigned char> bytes_;
  uint64_t owner_ = 0;
};

CULAUNCH_NAMESPACE_END
