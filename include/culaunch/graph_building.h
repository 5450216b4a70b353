// Building a culaunch::Graph: nodes are added one by one, or read from a graph of another library.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "graph.h"
#include "guard.h"
#include "lock.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

inline bool IsProgrammatic(const GraphNode& node) noexcept {
  for (const CUlaunchAttribute& attribute : node.attributes) {
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) return true;
  }
  return false;
}

}  // namespace detail

// Add a node after some. Under the lock.
inline CUresult Graph::Append(std::unique_ptr<GraphNode> node,
                              const std::vector<size_t>& last) noexcept {
  const CUresult permitted = Permits(*node);
  if (permitted != CUDA_SUCCESS) return permitted;
  if (root_->ordinal_ < 0) root_->ordinal_ = node->ordinal;
  const DeviceGuard guard(driver_, node->ordinal < 0 ? ordinal() : node->ordinal);
  if (guard.code() != CUDA_SUCCESS) return guard.code();
  const RelaxedCaptureGuard relaxed(driver_);
  std::vector<CUgraphNode> after;
  for (const size_t index : last) after.push_back(nodes_[index]->handle);
  const bool is_early = detail::IsProgrammatic(*node) && last.size() == 1 &&
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

// Programmatic launches are edges of a graph.
inline CUresult Graph::WaitEarly(CUgraphNode first, CUgraphNode second) noexcept {
  CUgraphEdgeData edge = {};
  edge.from_port = 1;  // CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
  edge.type = 1;       // CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
  return driver_.cuGraphAddDependencies_v2 == nullptr
             ? kUnsupported
             : driver_.cuGraphAddDependencies_v2(graph_, &first, &second, &edge, 1);
}

// Read the nodes and edges of a graph that was made elsewhere.
inline void Graph::ReadNodes() {
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

inline size_t Graph::NumberOf(CUgraphNode handle) const noexcept {
  size_t index = 0;
  while (index + 1 < nodes_.size() && nodes_[index]->handle != handle) ++index;
  return index;
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
