// Conditional nodes of a culaunch::Graph: their conditions, their bodies, and the rules for both.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <utility>

#include "graph.h"
#include "lock.h"
#include "text.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

// The types of nodes that cuda.h allows in a body, and in the graphs in it.
constexpr uint32_t kKindsInBodies =
    GraphNode::KindOf(CU_GRAPH_NODE_TYPE_KERNEL) | GraphNode::KindOf(CU_GRAPH_NODE_TYPE_EMPTY) |
    GraphNode::KindOf(CU_GRAPH_NODE_TYPE_GRAPH) | GraphNode::KindOf(CU_GRAPH_NODE_TYPE_MEMCPY) |
    GraphNode::KindOf(CU_GRAPH_NODE_TYPE_MEMSET) |
    GraphNode::KindOf(CU_GRAPH_NODE_TYPE_CONDITIONAL);

inline const char* NameOfForbidden(uint32_t kinds) noexcept {
  if ((kinds & GraphNode::KindOf(CU_GRAPH_NODE_TYPE_HOST)) != 0) return "a host function";
  if ((kinds & GraphNode::KindOf(CU_GRAPH_NODE_TYPE_EVENT_RECORD)) != 0) {
    return "the record of an event";
  }
  if ((kinds & GraphNode::KindOf(CU_GRAPH_NODE_TYPE_WAIT_EVENT)) != 0) {
    return "the wait for an event";
  }
  return "a node of another type";
}

// The oldest driver with more than one body. Every driver that culaunch opens has the rest.
constexpr int kElseVersion = 12080;

}  // namespace detail

inline CUresult Graph::Refuse(std::string why) noexcept {
  const LockGuard lock(refusal_mutex_);
  refusal_ = std::move(why);
  return kRefused;
}

inline Graph::Condition Graph::CreateCondition(unsigned value, bool is_default) {
  Graph& root = *root_;
  const auto create = [&](Condition* condition) -> CUresult {
    const LockGuard lock(root.mutex_);
    if (root.ordinal_ < 0) root.ordinal_ = CurrentDevice(driver_);
    const DeviceGuard guard(driver_, root.ordinal_);
    CUcontext context = nullptr;
    CUresult code = guard.code();
    if (code == CUDA_SUCCESS) code = driver_.PrimaryContext(root.ordinal_, &context);
    if (code == CUDA_SUCCESS) {
      code = GraphNodeCalls::Ask(driver_.cuGraphConditionalHandleCreate, condition, root.graph_,
                                 context, value,
                                 is_default ? unsigned{CU_GRAPH_COND_ASSIGN_DEFAULT} : 0u);
    }
    if (code != CUDA_SUCCESS) return code;
    root.conditions_.emplace_back(*condition, false);
    ++root.unused_conditions_;
    root.is_complete_ = false;
    return CUDA_SUCCESS;
  };
  Condition condition = 0;
  Check(create(&condition), "creating a condition");
  return condition;
}

// Whether a node may be added, or replace another. Under the lock.
inline CUresult Graph::Permits(const GraphNode& node) noexcept {
  const bool is_conditional = node.type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
  if ((node.child_kinds & GraphNode::KindOf(CU_GRAPH_NODE_TYPE_CONDITIONAL)) != 0) {
    return Refuse(
        "CUDA allows no conditional nodes in a graph that is a node of another graph: add the "
        "conditional nodes to this graph");
  }
  if (is_conditional) {
    const CUDA_CONDITIONAL_NODE_PARAMS& own = node.conditional;
    const int version = driver_.version();
    const bool is_switch = static_cast<int>(own.type) == 2;  // cuda.h has it from CUDA 12.8 on
    if ((is_switch || own.size > 1) && version < detail::kElseVersion) {
      return Refuse("else and switch need a driver for CUDA 12.8 or newer (got one for CUDA " +
                    detail::ToText(version / 1000) + "." + detail::ToText(version % 1000 / 10) +
                    "): use conditional nodes with one body, or update the driver");
    }
    for (const auto& [condition, is_used] : root_->conditions_) {
      if (condition != own.handle) continue;
      return is_used ? Refuse("the condition controls another node: create one for each node")
                     : CUDA_SUCCESS;
    }
    return Refuse("the condition is not one of this graph: create one with this graph");
  }
  if (root_ == this) return CUDA_SUCCESS;
  if (const uint32_t forbidden = node.Kinds() & ~detail::kKindsInBodies) {
    return Refuse(
        std::string("the body of a conditional node can have kernels, copies, fills, joins, "
                    "graphs of these, and conditional nodes (got ") +
        detail::NameOfForbidden(forbidden) + "): add it to the graph that contains the body");
  }
  if (node.ordinal >= 0 && root_->ordinal_ >= 0 && node.ordinal != root_->ordinal_) {
    return Refuse("the body of a conditional node must use the device of its graph, " +
                  detail::ToText(root_->ordinal_) + " (got device " + detail::ToText(node.ordinal) +
                  "): make a graph for each device");
  }
  return CUDA_SUCCESS;
}

// Note the bodies of a new conditional node, and that its condition is used.
inline void Graph::TakeBodies(GraphNode& node) {
  if (node.type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return;
  for (unsigned i = 0; i < node.conditional.size; ++i) {
    node.bodies.emplace_back(new Graph(node.conditional.phGraph_out[i], *root_));
  }
  for (auto& [condition, is_used] : root_->conditions_) {
    if (condition != node.conditional.handle) continue;
    is_used = true;
    --root_->unused_conditions_;
  }
}

inline Graph::Node Graph::AddConditional(Condition condition, CUgraphConditionalNodeType type,
                                         unsigned bodies, const Nodes& after) {
  return Add(GraphNode::Conditional(condition, type, bodies), after, "adding a conditional node");
}

CULAUNCH_NAMESPACE_END
