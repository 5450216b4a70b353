// culaunch::Graph: kernels, copies and more as a CUDA graph, recorded or added node by node.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "explain.h"
#include "graph_node.h"
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
  // Copy a graph of another library or of a capture.
  static std::unique_ptr<Graph> CopyOf(CUgraph other, Driver& driver = Driver::Get()) {
    CUgraph copy = nullptr;
    const DeviceGuard guard(driver, CurrentDevice(driver));
    driver.Check(driver.cuGraphClone != nullptr ? driver.cuGraphClone(&copy, other) : kUnsupported,
                 "copying a graph");
    return Owning(copy, driver);
  }
  // One that belongs to nobody else, as the end of a capture gives it.
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
    if (graph_ != nullptr) driver_.cuGraphDestroy(graph_);
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
  // Add a node that has its type and what that needs; `what` is for the error.
  Node Add(std::unique_ptr<GraphNode> node, const Nodes& after, const char* what);

  // Let a node do nothing in launches from now on, or what it did before.
  CUresult SetEnabled(Node node, bool is_enabled) noexcept {
    const LockGuard lock(mutex_);
    if (driver_.cuGraphNodeSetEnabled == nullptr) return kUnsupported;
    const CUresult code = Instantiated();
    return code == CUDA_SUCCESS
               ? driver_.cuGraphNodeSetEnabled(executable_, nodes_[node.index]->handle, is_enabled)
               : code;
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
  int ordinal() const noexcept { return ordinal_ < 0 ? CurrentDevice(driver_) : ordinal_; }
  size_t size() const noexcept { return nodes_.size(); }
  const GraphNode& node(size_t index) const noexcept { return *nodes_[index]; }

  // What is wrong, where a code says that something is.
  Status StatusOf(CUresult code, const char* what) {
    if (code == CUDA_SUCCESS) return {};
    if (code == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
      return Error(
          ErrorKind::kCall, code, driver_.ErrorName(code),
          std::string(what) +
              " failed: the stream is under capture, and CUDA captures no launch of a "
              "graph. Make the calls of the graph in the capture, or launch it after that");
    }
    for (const auto& node : nodes_) {
      if (node->type != CU_GRAPH_NODE_TYPE_KERNEL || node->ordinal < 0) continue;
      if (!node->IsLoaded()) {
        return Error(std::string(what) + " failed: the module of " + Demangle(node->name) +
                     " was unloaded. Record the graph again");
      }
      if (code == CUDA_ERROR_INVALID_VALUE &&
          RefusalOf(driver_, node->kernel_handle, node->config, node->ordinal) != CUDA_SUCCESS) {
        return ExplainLaunch(driver_, node->kernel_handle, Demangle(node->name), node->config,
                             node->ordinal, code);
      }
    }
    return driver_.StatusOf(code, what);
  }

 private:
  friend class GraphRecording;
  static constexpr CUresult kUnsupported = CUDA_ERROR_NOT_SUPPORTED;

  Graph(CUgraph graph, Driver& driver) : driver_(driver), graph_(graph) {}

  void Check(CUresult code, const char* what) { StatusOf(code, what).OrThrow(); }

  std::vector<size_t> Last() {
    const LockGuard lock(mutex_);
    return last_;
  }

  // Add a node after some. Under the lock.
  CUresult Append(std::unique_ptr<GraphNode> node, const std::vector<size_t>& last) noexcept {
    if (ordinal_ < 0) ordinal_ = node->ordinal;
    const DeviceGuard guard(driver_, node->ordinal < 0 ? ordinal() : node->ordinal);
    if (guard.code() != CUDA_SUCCESS) return guard.code();
    const RelaxedCaptureGuard relaxed(driver_);
    std::vector<CUgraphNode> after;
    for (const size_t index : last) after.push_back(nodes_[index]->handle);
    const bool is_early = IsProgrammatic(*node) && last.size() == 1 &&
                          nodes_[last[0]]->type == CU_GRAPH_NODE_TYPE_KERNEL;
    CUresult code = AddTo(*node, is_early ? nullptr : after.data(), is_early ? 0 : after.size());
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
    nodes_.push_back(std::move(node));
    is_complete_ = false;
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

  CUresult AddTo(GraphNode& node, const CUgraphNode* after, size_t count) noexcept {
    CUcontext context = nullptr;
    const CUresult code = driver_.PrimaryContext(ordinal(), &context);
    if (code != CUDA_SUCCESS) return code;
    switch (node.type) {
      case CU_GRAPH_NODE_TYPE_KERNEL: {
        const CUDA_KERNEL_NODE_PARAMS params = node.KernelParams();
        return Ask(driver_.cuGraphAddKernelNode, &node.handle, graph_, after, count, &params);
      }
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        return Ask(driver_.cuGraphAddMemcpyNode, &node.handle, graph_, after, count, &node.copy,
                   context);
      case CU_GRAPH_NODE_TYPE_MEMSET:
        return Ask(driver_.cuGraphAddMemsetNode, &node.handle, graph_, after, count, &node.fill,
                   context);
      case CU_GRAPH_NODE_TYPE_HOST:
        return Ask(driver_.cuGraphAddHostNode, &node.handle, graph_, after, count, &node.host);
      case CU_GRAPH_NODE_TYPE_GRAPH:
        return Ask(driver_.cuGraphAddChildGraphNode, &node.handle, graph_, after, count,
                   node.child);
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return Ask(driver_.cuGraphAddEventRecordNode, &node.handle, graph_, after, count,
                   node.event);
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return Ask(driver_.cuGraphAddEventWaitNode, &node.handle, graph_, after, count, node.event);
      case CU_GRAPH_NODE_TYPE_EMPTY:
        return Ask(driver_.cuGraphAddEmptyNode, &node.handle, graph_, after, count);
      default:
        return kUnsupported;
    }
  }

  template <class Function, class... Arguments>
  static CUresult Ask(Function function, Arguments... arguments) noexcept {
    return function == nullptr ? kUnsupported : function(arguments...);
  }

  // Let a node be another launch of its kernel. Under the lock.
  CUresult Replace(GraphNode& node, const CUlaunchConfig& config, void** arguments) noexcept {
    CUlaunchConfig& own = node.config;
    const bool is_same = ((own.gridDimX ^ config.gridDimX) | (own.gridDimY ^ config.gridDimY) |
                          (own.gridDimZ ^ config.gridDimZ) | (own.blockDimX ^ config.blockDimX) |
                          (own.blockDimY ^ config.blockDimY) | (own.blockDimZ ^ config.blockDimZ) |
                          (own.sharedMemBytes ^ config.sharedMemBytes)) == 0;
    // A driver that is told of arrays is told of those of an update, too.
    if (!node.TakeArguments(arguments) && is_same && driver_.note_array == nullptr) {
      return CUDA_SUCCESS;
    }
    if (!is_same) {
      const CUlaunchConfig before = own;
      own = config;
      own.attrs = before.attrs;
    }
    node.is_stale = is_complete_ || driver_.note_array == nullptr;
    if (!node.is_stale) return RefreshKernel(node);  // the driver was told of arrays for this call
    if (!is_complete_) return CUDA_SUCCESS;
    const AnyContextGuard context(driver_, ordinal());
    const CUDA_KERNEL_NODE_PARAMS params = node.KernelParams();
    return driver_.cuGraphExecKernelNodeSetParams(executable_, node.handle, &params);
  }
  CUresult Replace(GraphNode& node, const GraphNode& other) noexcept {
    node.copy = other.copy;
    node.fill = other.fill;
    node.host = other.host;
    node.event = other.event;
    node.child = other.child;
    node.is_stale = true;
    return is_complete_ ? SetInExecutable(node) : CUDA_SUCCESS;
  }

  CUresult SetInExecutable(const GraphNode& node) noexcept {
    const DeviceGuard guard(driver_, ordinal());
    CUcontext context = nullptr;
    CUresult code = guard.code();
    if (code == CUDA_SUCCESS) code = driver_.PrimaryContext(ordinal(), &context);
    if (code != CUDA_SUCCESS) return code;
    switch (node.type) {
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        return Ask(driver_.cuGraphExecMemcpyNodeSetParams, executable_, node.handle, &node.copy,
                   context);
      case CU_GRAPH_NODE_TYPE_MEMSET:
        return Ask(driver_.cuGraphExecMemsetNodeSetParams, executable_, node.handle, &node.fill,
                   context);
      case CU_GRAPH_NODE_TYPE_HOST:
        return Ask(driver_.cuGraphExecHostNodeSetParams, executable_, node.handle, &node.host);
      case CU_GRAPH_NODE_TYPE_GRAPH:
        return Ask(driver_.cuGraphExecChildGraphNodeSetParams, executable_, node.handle,
                   node.child);
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return Ask(driver_.cuGraphExecEventRecordNodeSetEvent, executable_, node.handle,
                   node.event);
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return Ask(driver_.cuGraphExecEventWaitNodeSetEvent, executable_, node.handle, node.event);
      default:
        return CUDA_SUCCESS;
    }
  }

  // Give the graph the parameters that its executable graph has.
  CUresult Refreshed() noexcept {
    CUresult code = CUDA_SUCCESS;
    for (const auto& node : nodes_) {
      if (!node->is_stale || code != CUDA_SUCCESS) continue;
      if (!node->IsLoaded()) return CUDA_ERROR_INVALID_HANDLE;
      code = node->type == CU_GRAPH_NODE_TYPE_KERNEL ? RefreshKernel(*node) : Refresh(*node);
      node->is_stale = code != CUDA_SUCCESS;
    }
    return code;
  }
  CUresult RefreshKernel(GraphNode& node) noexcept {
    const AnyContextGuard context(driver_, ordinal());
    const CUDA_KERNEL_NODE_PARAMS params = node.KernelParams();
    return driver_.cuGraphKernelNodeSetParams(node.handle, &params);
  }
  CUresult Refresh(const GraphNode& node) noexcept {
    CUcontext context = nullptr;
    const CUresult code = driver_.PrimaryContext(ordinal(), &context);
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
    return Ask(driver_.cuGraphNodeSetParams, node.handle, &params);
  }

  CUresult Instantiated() noexcept {
    if (is_complete_) return CUDA_SUCCESS;
    if (driver_.cuGraphInstantiateWithFlags == nullptr) return kUnsupported;
    if (!IsLoaded()) return CUDA_ERROR_INVALID_HANDLE;
    const DeviceGuard guard(driver_, ordinal());
    const RelaxedCaptureGuard relaxed(driver_);
    CUresult code = guard.code();
    if (code == CUDA_SUCCESS) code = Refreshed();
    if (code != CUDA_SUCCESS) return code;
    if (executable_ != nullptr) driver_.cuGraphExecDestroy(executable_);
    executable_ = nullptr;
    code = driver_.cuGraphInstantiateWithFlags(&executable_, graph_, 0);
    is_complete_ = code == CUDA_SUCCESS;
    return code;
  }

  CUresult WithExecutable(const Stream& stream, CUresult (*call)(CUgraphExec, CUstream)) noexcept {
    const LockGuard lock(mutex_);
    if (CULAUNCH_UNLIKELY(!IsLoaded())) return CUDA_ERROR_INVALID_HANDLE;
    if (CULAUNCH_UNLIKELY(!is_complete_)) {
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
      return guard.code() == CUDA_SUCCESS ? call(executable_, stream.handle) : guard.code();
    }
    return call(executable_, stream.handle);
  }

  // Whether the modules of all kernels are loaded.
  bool IsLoaded() const noexcept {
    for (const auto& node : nodes_) {
      if (!node->IsLoaded()) return false;
    }
    return true;
  }

  // Read the nodes and edges of a graph that was made elsewhere.
  void ReadNodes() {
    size_t count = 0;
    driver_.Check(Ask(driver_.cuGraphGetNodes, graph_, nullptr, &count), "reading the graph");
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
  Mutex mutex_;
  CUgraph graph_;
  CUgraphExec executable_ = nullptr;
  int ordinal_ = -1;          // of the first node that has a device
  bool is_complete_ = false;  // the executable graph has all nodes
  std::vector<size_t> last_;  // a node that comes after everything waits for these
  std::vector<std::unique_ptr<GraphNode>> nodes_;
};

// While it lives, what this thread launches is recorded in a graph, and nothing runs. Of one
// thread.
class GraphRecording final : private LaunchRecorder {
 public:
  // After everything that the graph has.
  explicit GraphRecording(Graph& graph) : GraphRecording(graph, graph.Last(), false) {}
  // After some nodes, or none.
  GraphRecording(Graph& graph, const Graph::Nodes& after)
      : GraphRecording(graph, NumbersOf(after), false) {}
  // Replaces `count` nodes from `first` on: the same launches with other arguments.
  GraphRecording(Graph& graph, size_t first, size_t count)
      : GraphRecording(graph, std::vector<size_t>(), true) {
    next_ = first;
    end_ = first + count;
  }
  GraphRecording(const GraphRecording&) = delete;
  GraphRecording& operator=(const GraphRecording&) = delete;
  ~GraphRecording() {
    graph_.driver_.graphs.CountRecordings(-1);
    Exchange(before_);
    if (is_replacing_ || last_.empty()) return;
    const LockGuard lock(graph_.mutex_);
    graph_.last_ = std::move(last_);
  }

  // Whether the launches were those of the nodes that are replaced.
  bool KeptForm() const noexcept { return KeptForm(end_); }
  // The same for those before node `end`.
  bool KeptForm(size_t end) const noexcept { return !has_changed_form_ && next_ == end; }

  // Any other node: `node` has its type and what that needs.
  CUresult TakeNode(std::unique_ptr<GraphNode> node) noexcept override {
    const LockGuard lock(graph_.mutex_);
    if (!is_replacing_) return Append(std::move(node));
    GraphNode* known = Next(node->type);
    return known != nullptr ? graph_.Replace(*known, *node) : kOtherForm;
  }

  CUresult TakeLaunch(KernelState& kernel, const CUlaunchConfig& config, int ordinal,
                      void** arguments) noexcept override {
    if (&kernel.driver() != &graph_.driver_) return CUDA_ERROR_INVALID_CONTEXT;
    CUfunction function = nullptr;
    const CUresult code = kernel.FunctionFor(config, &ordinal, &function);
    if (code != CUDA_SUCCESS) return code;
    const LockGuard lock(graph_.mutex_);
    if (is_replacing_) {
      GraphNode* known = Next(CU_GRAPH_NODE_TYPE_KERNEL);
      has_changed_form_ |= known == nullptr || known->function != function ||
                           known->config.numAttrs != config.numAttrs;
      return has_changed_form_ ? kOtherForm : graph_.Replace(*known, config, arguments);
    }
    auto node = std::make_unique<GraphNode>(CU_GRAPH_NODE_TYPE_KERNEL);
    node->ordinal = ordinal;
    node->is_loaded = kernel.is_loaded();
    node->kernel_handle = kernel.handle();
    node->function = function;
    node->name = kernel.name();
    node->config = config;
    node->attributes.assign(config.attrs, config.attrs + config.numAttrs);
    node->MakeRoom(kernel.parameters());
    node->TakeArguments(arguments);
    return Append(std::move(node));
  }

 private:
  static constexpr CUresult kOtherForm = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;

  GraphRecording(Graph& graph, std::vector<size_t> last, bool replaces)
      : graph_(graph), is_replacing_(replaces), last_(std::move(last)), before_(Exchange(this)) {
    graph.driver_.graphs.CountRecordings(1);
  }

  static std::vector<size_t> NumbersOf(const Graph::Nodes& nodes) {
    std::vector<size_t> numbers;
    for (const Graph::Node& node : nodes) numbers.push_back(node.index);
    return numbers;
  }

  CUresult Append(std::unique_ptr<GraphNode> node) noexcept {
    const CUresult code = graph_.Append(std::move(node), last_);
    if (code == CUDA_SUCCESS) last_.assign(1, graph_.nodes_.size() - 1);
    return code;
  }

  // The next node that is replaced; null, and noted, where there is none of that type.
  GraphNode* Next(CUgraphNodeType type) noexcept {
    const bool fits = next_ < end_ && graph_.nodes_[next_]->type == type;
    if (fits) return graph_.nodes_[next_++].get();
    has_changed_form_ = true;
    return nullptr;
  }

  Graph& graph_;
  bool is_replacing_;
  bool has_changed_form_ = false;
  size_t next_ = 0;
  size_t end_ = 0;
  std::vector<size_t> last_;  // the next node waits for these
  LaunchRecorder* before_;
};

template <class... Arguments>
Graph::Node Graph::AddKernel(const Kernel& kernel, const LaunchConfig& config, const Nodes& after,
                             const Arguments&... arguments) {
  const GraphRecording recording(*this, after);
  kernel(config, arguments...);
  return {nodes_.size() - 1};
}

template <class... Arguments>
void Graph::Update(Node node, const Kernel& kernel, const LaunchConfig& config,
                   const Arguments&... arguments) {
  const GraphRecording recording(*this, node.index, 1);
  kernel(config, arguments...);
}

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

inline Graph::Node Graph::Add(std::unique_ptr<GraphNode> node, const Nodes& after,
                              const char* what) {
  GraphRecording recording(*this, after);
  Check(recording.TakeNode(std::move(node)), what);
  return {nodes_.size() - 1};
}

inline Graph::Node Graph::AddHost(CUhostFn function, void* data, const Nodes& after) {
  auto node = std::make_unique<GraphNode>(CU_GRAPH_NODE_TYPE_HOST);
  node->host = {function, data};
  return Add(std::move(node), after, "adding a host function");
}

inline Graph::Node Graph::AddChild(Graph& child, const Nodes& after) {
  auto node = std::make_unique<GraphNode>(CU_GRAPH_NODE_TYPE_GRAPH);
  node->child = child.handle();
  return Add(std::move(node), after, "adding a graph");
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
