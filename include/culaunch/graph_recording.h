// culaunch::GraphRecording: the launches of a thread, recorded as the nodes of a graph.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "graph.h"
#include "guard.h"
#include "launch_recorder.h"
#include "lock.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// While it exists, the launches of this thread are recorded in a graph, and do not run. Only one
// thread may use it.
class GraphRecording final : private LaunchRecorder {
 public:
  // After everything that the graph has.
  explicit GraphRecording(Graph& graph) : GraphRecording(graph, std::vector<size_t>(), false) {
    follows_all_ = true;
  }
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
  }

  // Whether the launches were those of the nodes that are replaced.
  bool KeptForm() const noexcept { return KeptForm(end_); }
  // The same for those before node `end`.
  bool KeptForm(size_t end) const noexcept { return !has_changed_form_ && next_ == end; }

  // Any other node: the members of `node` are filled in.
  CUresult TakeNode(std::unique_ptr<GraphNode> node) noexcept override {
    const LockGuard lock(graph_.mutex_);
    if (!is_replacing_) return Append(std::move(node));
    GraphNode* known = Next(node->type);
    return known != nullptr ? graph_.Replace(*known, *node) : kOtherForm;
  }

  Status StatusOf(CUresult code, const char* what) override { return graph_.StatusOf(code, what); }

  CUresult TakeLaunch(KernelState& kernel, const CUlaunchConfig& config, int ordinal,
                      void** arguments) noexcept override {
    if (&kernel.driver() != &graph_.driver_) return CUDA_ERROR_INVALID_CONTEXT;
    CUfunction function = nullptr;
    const CUresult code = kernel.FunctionFor(config, &ordinal, &function);
    if (code != CUDA_SUCCESS) return code;
    const LockGuard lock(graph_.mutex_);
    if (is_replacing_) {
      if (!has_context_) has_context_ = context_.Enter(graph_.driver_, ordinal) == CUDA_SUCCESS;
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
    const CUresult code = graph_.Append(std::move(node), follows_all_ ? graph_.last_ : last_);
    if (code == CUDA_SUCCESS) last_.assign(1, graph_.nodes_.size() - 1);
    return code;
  }

  // The next node that is replaced; null, and noted, if there is none of that type.
  GraphNode* Next(CUgraphNodeType type) noexcept {
    const bool fits = next_ < end_ && graph_.nodes_[next_]->type == type;
    if (fits) return graph_.nodes_[next_++].get();
    has_changed_form_ = true;
    return nullptr;
  }

  Graph& graph_;
  bool is_replacing_;
  bool follows_all_ = false;  // each node waits for all that the graph has
  bool has_changed_form_ = false;
  size_t next_ = 0;
  size_t end_ = 0;
  std::vector<size_t> last_;  // else the next node waits for these
  LaunchRecorder* before_;
  AnyContextGuard context_;  // for all nodes that are replaced
  bool has_context_ = false;
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

inline Graph::Node Graph::Add(std::unique_ptr<GraphNode> node, const Nodes& after,
                              const char* what) {
  GraphRecording recording(*this, after);
  Check(recording.TakeNode(std::move(node)), what);
  return {nodes_.size() - 1};
}

CULAUNCH_NAMESPACE_END
