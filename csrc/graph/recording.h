// Recording the calls of this thread in a graph.
#pragma once

#include <optional>

#include "graph/graph_object.h"
#include "python/call_keeper.h"

namespace graph {

// New nodes, from one thread. The GIL is held.
class Recording final : private CallKeeper {
 public:
  // The nodes to follow; null: all earlier nodes. With `is_one_call`, inner calls are parts of one
  // call, and not nodes of their own.
  Recording(GraphObject* graph, const culaunch::Graph::Nodes* after, bool is_one_call);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() { Leave(before_); }

  size_t first() const { return first_; }
  // A list of the objects that inner calls without a node of their own keep alive, or null.
  Ref TakeKept() { return std::move(kept_); }

 private:
  void Keep(Ref object) override;
  void Begin() override;
  void End(PyObject* callable, PyObject* const* args, size_t count, PyObject* names) override;
  void NoteLaunch(PyObject* callable, PyObject* const* args, size_t count) override;
  void Note(size_t made, PyObject* callable, PyObject* const* args, size_t count, PyObject* names);

  GraphObject* graph_;
  std::unique_ptr<culaunch::GraphRecording> recording_;
  CallKeeper* before_;
  size_t first_;
  int depth_;
  Ref kept_;
};

// Repeated calls that replace consecutive nodes.
class Replacement final : private CallKeeper {
 public:
  Replacement(GraphObject* graph, size_t first, size_t count);
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  // Leaving the recording's context may call a driver that is written in Python, which must not see
  // the call's error.
  ~Replacement() {
    Leave(before_);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    recording_.reset();
    PyErr_Restore(type, value, traceback);
  }

  // Whether the launches before this driver node were the same.
  bool KeptForm(size_t end) const { return recording_->KeptForm(end); }
  Ref TakeKept() { return std::move(kept_); }

 private:
  void Keep(Ref object) override;
  void Begin() override {}
  void End(PyObject*, PyObject* const*, size_t, PyObject*) override {}
  void NoteLaunch(PyObject*, PyObject* const*, size_t) override {}

  std::optional<culaunch::GraphRecording> recording_;
  CallKeeper* before_;
  Ref kept_;
};

}  // namespace graph
