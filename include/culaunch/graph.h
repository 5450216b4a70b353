// culaunch::Graph: kernels, copies and more as a CUDA graph, recorded or added node by node.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "explain.h"
#include "graph_node.h"
#include "graph_node_calls.h"
#include "guard.h"
#include "kernel.h"
#include "kernel_state.h"
#include "launch_config.h"
#include "launch_recorder.h"
#include "lock.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// Owns a CUgraph and its CUgraphExec, which the first launch makes. While a GraphRecording lives,
// the launches of its thread become nodes, in order. Nodes are checked as launches are. Threads may
// use one graph at once: they wait for each other.
class Graph {
 public:
  // A node, by its number.
  struct Node {
    size_t index;
  };
  using Nodes = std::vector<Node>;

  explicit Graph(Driver& driver = Driver::Get()) : Graph(nullptr, driver) {
    driver_.Check(
        driver_.cuGraphCreate != nullptr ? driver_.cuGraphCreate(&graph_, 0) : kUnsupported,
        "creating a graph");
  }
  // Copy a graph that another library or a capture made.
  static std::unique_ptr<Graph> CopyOf(CUgraph other, Driver& driver = Driver::Get()) {
    CUgraph copy = nullptr;
    const DeviceGuard guard(driver, CurrentDevice(driver));
    driver.Check(driver.cuGraphClone != nullptr ? driver.cuGraphClone(&copy, other) : kUnsupported,
                 "copying a graph");
    return Owning(copy, driver);
  }
  // A graph without another owner, as returned by the end of a capture.
  static std::unique_ptr<Graph> Owning(CUgraph own, Driver& driver = Driver::Get()) {
    std::unique_ptr<Graph> graph(new Graph(own, driver));
    graph->ReadNodes();
    return graph;
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    const RelaxedCaptureGuard relaxed(driver_);
    if (executable_ != nullptr) driver_.cuGraphExecDestroy(executable_);
    if (graph_ != nullptr && root_ == this) driver_.cuGraphDestroy(graph_);
  }

  // Add a launch that runs after others.
  template <class... Arguments>
  Node AddKernel(const Kernel& kernel, const LaunchConfig& config, const Nodes& after,
                 const Arguments&... arguments);
  // Let the node of a launch be this one, checked as a launch is. The kernel stays the same.
  template <class... Arguments>
  void Update(Node node, const Kernel& kernel, const LaunchConfig& config,
              const Arguments&... arguments);

  Node AddCopy(CUdeviceptr to, CUdeviceptr from, size_t bytes, const Nodes& after);
  Node AddFill(CUdeviceptr to, unsigned char value, size_t bytes, const Nodes& after);
  Node AddHost(CUhostFn function, void* data, const Nodes& after);
  Node AddChild(Graph& child, const Nodes& after);
  Node AddEventRecord(CUevent event, const Nodes& after);
  Node AddEventWait(CUevent event, const Nodes& after);
  // Waits for others, and does nothing.
  Node AddEmpty(const Nodes& after);
  // A number that kernels set by cudaGraphSetConditional. It controls one conditional node of this
  // graph, or of a body in it, and is `value` when a launch of the graph begins.
  using Condition = CUgraphConditionalHandle;
  Condition CreateCondition(unsigned value) { return CreateCondition(value, true); }
  // One that a kernel must set before its node runs.
  Condition CreateCondition() { return CreateCondition(0, false); }
  // CU_GRAPH_COND_TYPE_IF: the first body runs unless the condition is 0, and the second, if there
  // is one, otherwise. WHILE: the body runs again until the condition is 0. SWITCH: the body with
  // the condition's number runs, if there is one.
  Node AddConditional(Condition condition, CUgraphConditionalNodeType type, unsigned bodies,
                      const Nodes& after);
  // A graph inside a conditional node. It lives as long as this graph, and is launched by it.
  Graph& Body(Node node, size_t index) const noexcept { return *nodes_[node.index]->bodies[index]; }

  // Make a node that is a copy of a graph. That must live until the node is added.
  static std::unique_ptr<GraphNode> NodeOf(Graph& child);
  // Add a node whose members are filled in; `what` is for the error.
  Node Add(std::unique_ptr<GraphNode> node, const Nodes& after, const char* what);

  // Disable a node in launches from now on, or enable it again. A kernel, a copy or a fill: cuda.h
  // says that no other type is supported.
  CUresult SetEnabled(Node node, bool is_enabled) noexcept {
    const LockGuard lock(mutex_);
    if (driver_.cuGraphNodeSetEnabled == nullptr) return kUnsupported;
    GraphNode& own = *nodes_[node.index];
    CUresult code = Instantiated();
    if (code != CUDA_SUCCESS) return code;
    code = driver_.cuGraphNodeSetEnabled(executable_, own.handle, is_enabled ? 1 : 0);
    if (code == CUDA_SUCCESS) own.is_enabled = is_enabled;
    return code;
  }

  // Make the executable graph, which the first launch does else; move it to the device.
  CUresult TryInstantiate() noexcept {
    const LockGuard lock(mutex_);
    return Instantiated();
  }
  CUresult TryUpload(Stream stream) noexcept {
    return WithExecutable(stream, driver_.cuGraphUpload);
  }
  // Launch all of it in the order of a stream, which must not be under capture.
  CUresult TryLaunch(Stream stream) noexcept {
    return WithExecutable(stream, driver_.cuGraphLaunch);
  }
  void Instantiate() { Check(TryInstantiate(), "instantiating the graph"); }
  void Upload(Stream stream) { Check(TryUpload(stream), "uploading the graph"); }
  void Launch(Stream stream) { Check(TryLaunch(stream), "launching the graph"); }

  // The graph as other libraries take it, with the arguments that its nodes have now. It stays this
  // object's.
  CUgraph handle() {
    const LockGuard lock(mutex_);
    Check(Refreshed(), "reading the graph");
    return graph_;
  }
  CUgraphExec executable() {
    Instantiate();
    return executable_;
  }
  Driver& driver() const noexcept { return driver_; }
  int ordinal() const noexcept {
    return root_->ordinal_ < 0 ? CurrentDevice(driver_) : root_->ordinal_;
  }
  size_t size() const noexcept { return nodes_.size(); }
  const GraphNode& node(size_t index) const noexcept { return *nodes_[index]; }

  // The description of a failure, if a code is an error.
  Status StatusOf(CUresult code, const char* what) {
    if (code == CUDA_SUCCESS) return {};
    if (code == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
      return Error(
          ErrorKind::kCall, code, driver_.ErrorName(code),
          std::string(what) +
              " failed: the stream is being captured, and CUDA cannot capture the launch of a "
              "graph. Make the calls of the graph in the capture, or launch it after the capture");
    }
    if (code == kRefused) {
      const LockGuard lock(refusal_mutex_);
      // Once: the driver may return the same code later.
      const std::string why = std::exchange(refusal_, {});
      if (!why.empty()) return Error(std::string(what) + " failed: " + why);
    }
    Status status = StatusOfNodes(code, what);
    return status.ok() ? driver_.StatusOf(code, what) : std::move(status);
  }

 private:
  friend class GraphRecording;
  static constexpr CUresult kUnsupported = GraphNodeCalls::kUnsupported;

  // An operation that this graph itself refuses; `refusal_` says why.
  static constexpr CUresult kRefused = CUDA_ERROR_NOT_PERMITTED;

  Graph(CUgraph graph, Driver& driver)
      : driver_(driver), root_(this), mutex_(own_mutex_), graph_(graph) {}
  // A body, which a conditional node owns.
  Graph(CUgraph graph, Graph& root)
      : driver_(root.driver_), root_(&root), mutex_(root.own_mutex_), graph_(graph) {}

  void Check(CUresult code, const char* what) { StatusOf(code, what).OrThrow(); }

  // An error that a kernel of the graph or of a body explains; ok if none does.
  Status StatusOfNodes(CUresult code, const char* what) {
    for (const auto& node : nodes_) {
      if (const std::string* kernel = node->UnloadedKernel()) {
        return Error(std::string(what) + " failed: the module of " + Demangle(*kernel) +
                     " was unloaded. Record the graph again");
      }
      for (const auto& body : node->bodies) {
        Status status = body->StatusOfNodes(code, what);
        if (!status.ok()) return status;
      }
      if (node->type != CU_GRAPH_NODE_TYPE_KERNEL || node->ordinal < 0) continue;
      if (code == CUDA_ERROR_INVALID_VALUE &&
          RefusalOf(driver_, node->kernel_handle, node->config, node->ordinal) != CUDA_SUCCESS) {
        return ExplainLaunch(driver_, node->kernel_handle, Demangle(node->name), node->config,
                             node->ordinal, code);
      }
    }
    return {};
  }

  // In graph_building.h.
  inline CUresult Append(std::unique_ptr<GraphNode> node, const std::vector<size_t>& last) noexcept;
  inline CUresult WaitEarly(CUgraphNode first, CUgraphNode second) noexcept;
  inline void ReadNodes();
  inline size_t NumberOf(CUgraphNode handle) const noexcept;

  // In graph_conditional.h.
  inline Condition CreateCondition(unsigned value, bool is_default);
  inline CUresult Refuse(std::string why) noexcept;
  inline CUresult Permits(const GraphNode& node) noexcept;
  inline void TakeBodies(GraphNode& node);

  // In graph_executable.h.
  inline CUresult Replace(GraphNode& node, const CUlaunchConfig& config, void** arguments) noexcept;
  inline CUresult Replace(GraphNode& node, GraphNode& other) noexcept;
  inline CUresult KeepCopy(CUgraph graph, std::shared_ptr<CUgraph_st>* copy) noexcept;
  inline CUresult SetInExecutable(GraphNode& node) noexcept;
  inline CUresult Refreshed() noexcept;
  inline CUresult Instantiated() noexcept;
  inline CUresult WithExecutable(const Stream& stream,
                                 CUresult (*call)(CUgraphExec, CUstream)) noexcept;
  inline CUresult Call(CUresult (*call)(CUgraphExec, CUstream), CUstream stream) noexcept;
  inline bool IsLoaded() const noexcept;

  Driver& driver_;
  Graph* const root_;  // the graph that contains this body; else this graph
  Mutex own_mutex_;
  Mutex& mutex_;  // the root's
  CUgraph graph_;
  CUgraphExec executable_ = nullptr;
  int ordinal_ = -1;              // of the first node that has a device
  bool is_complete_ = false;      // the executable graph has all nodes
  bool has_new_bodies_ = false;   // of a root: a node in a body was updated since
  size_t unused_conditions_ = 0;  // of a root
  std::vector<std::pair<Condition, bool>> conditions_;  // of a root: whether each has a node
  Mutex refusal_mutex_;  // the error is described after the lock of the graph is released
  std::string refusal_;
  std::vector<size_t> last_;  // a node that comes after everything waits for these
  std::vector<std::unique_ptr<GraphNode>> nodes_;
};

CULAUNCH_NAMESPACE_END

#include "graph_building.h"
#include "graph_conditional.h"
#include "graph_executable.h"
#include "graph_recording.h"
