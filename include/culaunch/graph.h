// culaunch::Graph: kernels, copies and more as a CUDA graph, recorded or added node by node.
#pragma once

#include <cuda.h>

#include <algorithm>
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
#include "launch_observer.h"
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

  // In graph_conditional.h.
  inline Condition CreateCondition(unsigned value, bool is_default);
  inline CUresult Refuse(std::string why) noexcept;
  inline CUresult Permits(const GraphNode& node) noexcept;
  inline void TakeBodies(GraphNode& node);

  // Add a node after some. Under the lock.
  CUresult Append(std::unique_ptr<GraphNode> node, const std::vector<size_t>& last) noexcept {
    const CUresult permitted = Permits(*node);
    if (permitted != CUDA_SUCCESS) return permitted;
    if (root_->ordinal_ < 0) root_->ordinal_ = node->ordinal;
    const DeviceGuard guard(driver_, node->ordinal < 0 ? ordinal() : node->ordinal);
    if (guard.code() != CUDA_SUCCESS) return guard.code();
    const RelaxedCaptureGuard relaxed(driver_);
    std::vector<CUgraphNode> after;
    for (const size_t index : last) after.push_back(nodes_[index]->handle);
    const bool is_early = IsProgrammatic(*node) && last.size() == 1 &&
                          nodes_[last[0]]->type == CU_GRAPH_NODE_TYPE_KERNEL;
    CUresult code =
        GraphNodeCalls::Add(driver_, ordinal(), graph_, *node, is_early ? nullptr : after.data(),
                            is_early ? 0 : after.size());
    if (code == CUDA_SUCCESS && is_early) code = WaitEarly(after[0], node->handle);
    for (const CUlaunchAttribute& attribute : node->attributes) {
      if (code != CUDA_SUCCESS) break;
      if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) continue;
      code = driver_.cuGraphKernelNodeSetAttribute(node->handle, attribute.id, &attribute.value);
    }
    if (code != CUDA_SUCCESS) {
      if (node->handle != nullptr) driver_.cuGraphDestroyNode(node->handle);
      return code;
    }
    node->config.attrs = node->attributes.data();
    node->after = last;
    TakeBodies(*node);
    for (const size_t index : node->after) {
      last_.erase(std::remove(last_.begin(), last_.end(), index), last_.end());
    }
    last_.push_back(nodes_.size());
    nodes_.push_back(std::move(node));
    root_->is_complete_ = false;
    return CUDA_SUCCESS;
  }

  static bool IsProgrammatic(const GraphNode& node) noexcept {
    for (const CUlaunchAttribute& attribute : node.attributes) {
      if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) return true;
    }
    return false;
  }

  // Programmatic launches are edges of a graph.
  CUresult WaitEarly(CUgraphNode first, CUgraphNode second) noexcept {
    CUgraphEdgeData edge = {};
    edge.from_port = 1;  // CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
    edge.type = 1;       // CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
    return driver_.cuGraphAddDependencies_v2 == nullptr
               ? kUnsupported
               : driver_.cuGraphAddDependencies_v2(graph_, &first, &second, &edge, 1);
  }

  // Let a node be another launch of its kernel. Under the lock.
  CUresult Replace(GraphNode& node, const CUlaunchConfig& config, void** arguments) noexcept {
    CUlaunchConfig& own = node.config;
    const bool is_same = ((own.gridDimX ^ config.gridDimX) | (own.gridDimY ^ config.gridDimY) |
                          (own.gridDimZ ^ config.gridDimZ) | (own.blockDimX ^ config.blockDimX) |
                          (own.blockDimY ^ config.blockDimY) | (own.blockDimZ ^ config.blockDimZ) |
                          (own.sharedMemBytes ^ config.sharedMemBytes)) == 0;
    // If arrays are reported to a driver, those of an update are, too.
    if (!node.TakeArguments(arguments) && is_same && driver_.note_array == nullptr) {
      return CUDA_SUCCESS;
    }
    if (!is_same) {
      const CUlaunchConfig before = own;
      own = config;
      own.attrs = before.attrs;
    }
    root_->has_new_bodies_ |= root_ != this;
    node.is_stale = is_complete_ || driver_.note_array == nullptr;
    // Otherwise the driver has the arrays of this call.
    if (!node.is_stale) return GraphNodeCalls::Set(driver_, ordinal(), node);
    return is_complete_ ? SetInExecutable(node) : CUDA_SUCCESS;
  }
  CUresult Replace(GraphNode& node, GraphNode& other) noexcept {
    if (node.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return CUDA_SUCCESS;
    const CUresult permitted = Permits(other);
    if (permitted != CUDA_SUCCESS) return permitted;
    root_->has_new_bodies_ |= root_ != this;
    // The other graph may change or go before this one is asked for its handle.
    if (node.type == CU_GRAPH_NODE_TYPE_GRAPH) {
      const CUresult code = KeepCopy(other.child, &other.own_child);
      if (code != CUDA_SUCCESS) return code;
      node.own_child = std::move(other.own_child);
      node.child = node.own_child.get();
      node.modules = std::move(other.modules);
      node.child_kinds = other.child_kinds;
    }
    node.copy = other.copy;
    node.fill = other.fill;
    node.host = other.host;
    node.event = other.event;
    node.is_stale = true;
    return is_complete_ ? SetInExecutable(node) : CUDA_SUCCESS;
  }
  CUresult KeepCopy(CUgraph graph, std::shared_ptr<CUgraph_st>* copy) noexcept {
    CUgraph own = nullptr;
    const CUresult code = GraphNodeCalls::Ask(driver_.cuGraphClone, &own, graph);
    if (code != CUDA_SUCCESS) return code;
    copy->reset(own, [&driver = driver_](CUgraph one) { driver.cuGraphDestroy(one); });
    return CUDA_SUCCESS;
  }
  CUresult SetInExecutable(GraphNode& node) noexcept {
    return GraphNodeCalls::SetInExecutable(driver_, ordinal(), executable_, node);
  }

  // Give the graph the parameters that its executable graph has.
  CUresult Refreshed() noexcept {
    CUresult code = CUDA_SUCCESS;
    for (const auto& node : nodes_) {
      for (const auto& body : node->bodies) {
        if (code == CUDA_SUCCESS) code = body->Refreshed();
      }
      if (!node->is_stale || code != CUDA_SUCCESS) continue;
      if (!node->IsLoaded()) return CUDA_ERROR_INVALID_HANDLE;
      code = GraphNodeCalls::Set(driver_, ordinal(), *node);
      node->is_stale = code != CUDA_SUCCESS;
      if (!node->is_stale) node->own_child.reset();
    }
    return code;
  }

  CUresult Instantiated() noexcept {
    if (is_complete_ && !has_new_bodies_) return CUDA_SUCCESS;
    if (root_ != this) {
      return Refuse(
          "it is a body of a conditional node, which runs with the graph that contains it: use "
          "that graph");
    }
    if (unused_conditions_ != 0) {
      return Refuse(
          "a condition of the graph controls no node, which CUDA refuses: add a conditional node "
          "for each condition");
    }
    if (driver_.cuGraphInstantiateWithFlags == nullptr) return kUnsupported;
    if (!IsLoaded()) return CUDA_ERROR_INVALID_HANDLE;
    const DeviceGuard guard(driver_, ordinal());
    const RelaxedCaptureGuard relaxed(driver_);
    CUresult code = guard.code();
    if (code == CUDA_SUCCESS) code = Refreshed();
    if (code != CUDA_SUCCESS) return code;
    // No other call updates the nodes in a body of an executable graph.
    CUgraphExecUpdateResultInfo info = {};
    const bool is_updated =
        is_complete_ &&
        GraphNodeCalls::Ask(driver_.cuGraphExecUpdate, executable_, graph_, &info) == CUDA_SUCCESS;
    if (!is_updated) {
      // A graph with conditional nodes may have one executable graph at a time.
      if (executable_ != nullptr) driver_.cuGraphExecDestroy(executable_);
      executable_ = nullptr;
      code = driver_.cuGraphInstantiateWithFlags(&executable_, graph_, 0);
    }
    for (const auto& node : nodes_) {
      if (code != CUDA_SUCCESS || node->is_enabled) continue;
      code = driver_.cuGraphNodeSetEnabled(executable_, node->handle, 0);
    }
    is_complete_ = code == CUDA_SUCCESS;
    has_new_bodies_ = !is_complete_;
    return code;
  }

  CUresult WithExecutable(const Stream& stream, CUresult (*call)(CUgraphExec, CUstream)) noexcept {
    const LockGuard lock(mutex_);
    if (CULAUNCH_UNLIKELY(!IsLoaded())) return CUDA_ERROR_INVALID_HANDLE;
    if (CULAUNCH_UNLIKELY(!is_complete_ || has_new_bodies_)) {
      const CUresult code = Instantiated();
      if (code != CUDA_SUCCESS) return code;
    }
    if (call == nullptr) return kUnsupported;
    // Asking libcuda would end the capture.
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver_.cuStreamIsCapturing != nullptr &&
        driver_.cuStreamIsCapturing(stream.handle, &capture) == CUDA_SUCCESS &&
        capture != CU_STREAM_CAPTURE_STATUS_NONE) {
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    const AnyContextGuard context(driver_, ordinal_);
    // A default stream belongs to the current context.
    if (IsDefaultStream(stream.handle)) {
      const DeviceGuard guard(driver_, stream.device < 0 ? ordinal() : stream.device);
      return guard.code() == CUDA_SUCCESS ? Call(call, stream.handle) : guard.code();
    }
    return Call(call, stream.handle);
  }

  CUresult Call(CUresult (*call)(CUgraphExec, CUstream), CUstream stream) noexcept {
    LaunchObserver* const observer =
        call == driver_.cuGraphLaunch ? driver_.graphs.observer() : nullptr;
    return observer != nullptr ? observer->LaunchGraph(*this, executable_, stream)
                               : call(executable_, stream);
  }

  // Whether the modules of all kernels are loaded.
  bool IsLoaded() const noexcept {
    for (const auto& node : nodes_) {
      if (!node->IsLoaded()) return false;
      for (const auto& body : node->bodies) {
        if (!body->IsLoaded()) return false;
      }
    }
    return true;
  }

  // Read the nodes and edges of a graph that was made elsewhere.
  void ReadNodes() {
    size_t count = 0;
    driver_.Check(GraphNodeCalls::Ask(driver_.cuGraphGetNodes, graph_, nullptr, &count),
                  "reading the graph");
    std::vector<CUgraphNode> handles(count);
    if (count != 0) {
      driver_.Check(driver_.cuGraphGetNodes(graph_, handles.data(), &count), "reading the graph");
    }
    for (const CUgraphNode handle : handles) {
      auto node = std::make_unique<GraphNode>();
      node->handle = handle;
      driver_.Check(driver_.cuGraphNodeGetType(handle, &node->type), "reading a node");
      nodes_.push_back(std::move(node));
    }
    size_t edges = 0;
    const auto read = driver_.cuGraphGetEdges_v2;
    if (read == nullptr || read(graph_, nullptr, nullptr, nullptr, &edges) != CUDA_SUCCESS) return;
    std::vector<CUgraphNode> first(edges), second(edges);
    std::vector<CUgraphEdgeData> data(edges);
    if (edges != 0) {
      driver_.Check(read(graph_, first.data(), second.data(), data.data(), &edges),
                    "reading the edges of the graph");
    }
    std::vector<bool> has_more(count);
    for (size_t i = 0; i < edges; ++i) {
      const size_t before = NumberOf(first[i]);
      nodes_[NumberOf(second[i])]->after.push_back(before);
      has_more[before] = true;
    }
    for (size_t i = 0; i < count; ++i) {
      if (!has_more[i]) last_.push_back(i);
    }
  }

  size_t NumberOf(CUgraphNode handle) const noexcept {
    size_t index = 0;
    while (index + 1 < nodes_.size() && nodes_[index]->handle != handle) ++index;
    return index;
  }

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

inline Graph::Node Graph::AddCopy(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                  const Nodes& after) {
  return Add(GraphNode::Copy(-1, {reinterpret_cast<void*>(to), false},
                             {reinterpret_cast<void*>(from), false}, bytes),
             after, "adding a copy");
}

inline Graph::Node Graph::AddFill(CUdeviceptr to, unsigned char value, size_t bytes,
                                  const Nodes& after) {
  return Add(GraphNode::Fill(-1, to, value, 1, bytes), after, "adding a fill");
}

inline Graph::Node Graph::AddHost(CUhostFn function, void* data, const Nodes& after) {
  auto node = std::make_unique<GraphNode>(CU_GRAPH_NODE_TYPE_HOST);
  node->host = {function, data};
  return Add(std::move(node), after, "adding a host function");
}

inline Graph::Node Graph::AddChild(Graph& child, const Nodes& after) {
  return Add(NodeOf(child), after, "adding a graph");
}

inline std::unique_ptr<GraphNode> Graph::NodeOf(Graph& child) {
  auto node = std::make_unique<GraphNode>(CU_GRAPH_NODE_TYPE_GRAPH);
  if (child.root_ != &child) {
    child.Check(child.Refuse("it is a body of a conditional node, which stays in its graph: add a "
                             "graph of its own"),
                "copying a graph");
  }
  node->child = child.handle();
  const LockGuard lock(child.mutex_);
  for (const auto& one : child.nodes_) {
    node->child_kinds |= one->Kinds();
    if (one->is_loaded != nullptr) node->modules.push_back({one->is_loaded, one->name});
    node->modules.insert(node->modules.end(), one->modules.begin(), one->modules.end());
  }
  return node;
}

inline Graph::Node Graph::AddEventRecord(CUevent event, const Nodes& after) {
  return Add(GraphNode::Event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event), after,
             "adding the record of an event");
}

inline Graph::Node Graph::AddEventWait(CUevent event, const Nodes& after) {
  return Add(GraphNode::Event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event), after,
             "adding the wait for an event");
}

inline Graph::Node Graph::AddEmpty(const Nodes& after) {
  return Add(std::make_unique<GraphNode>(), after, "adding an empty node");
}

CULAUNCH_NAMESPACE_END

#include "graph_conditional.h"
#include "graph_recording.h"
