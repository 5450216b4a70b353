// The executable graph of a culaunch::Graph: made, updated and launched.
#pragma once

#include <cuda.h>

#include <memory>
#include <utility>

#include "graph.h"
#include "guard.h"
#include "launch_observer.h"
#include "lock.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// Let a node be another launch of its kernel. Under the lock.
inline CUresult Graph::Replace(GraphNode& node, const CUlaunchConfig& config,
                               void** arguments) noexcept {
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

inline CUresult Graph::Replace(GraphNode& node, GraphNode& other) noexcept {
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

inline CUresult Graph::KeepCopy(CUgraph graph, std::shared_ptr<CUgraph_st>* copy) noexcept {
  CUgraph own = nullptr;
  const CUresult code = GraphNodeCalls::Ask(driver_.cuGraphClone, &own, graph);
  if (code != CUDA_SUCCESS) return code;
  copy->reset(own, [&driver = driver_](CUgraph one) { driver.cuGraphDestroy(one); });
  return CUDA_SUCCESS;
}

inline CUresult Graph::SetInExecutable(GraphNode& node) noexcept {
  return GraphNodeCalls::SetInExecutable(driver_, ordinal(), executable_, node);
}

// Give the graph the parameters that its executable graph has.
inline CUresult Graph::Refreshed() noexcept {
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

inline CUresult Graph::Instantiated() noexcept {
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

inline CUresult Graph::WithExecutable(const Stream& stream,
                                      CUresult (*call)(CUgraphExec, CUstream)) noexcept {
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

inline CUresult Graph::Call(CUresult (*call)(CUgraphExec, CUstream), CUstream stream) noexcept {
  LaunchObserver* const observer =
      call == driver_.cuGraphLaunch ? driver_.graphs.observer() : nullptr;
  return observer != nullptr ? observer->LaunchGraph(*this, executable_, stream)
                             : call(executable_, stream);
}

// Whether the modules of all kernels are loaded.
inline bool Graph::IsLoaded() const noexcept {
  for (const auto& node : nodes_) {
    if (!node->IsLoaded()) return false;
    for (const auto& body : node->bodies) {
      if (!body->IsLoaded()) return false;
    }
  }
  return true;
}

CULAUNCH_NAMESPACE_END
