// The calls of this thread, recorded in a graph.
#pragma once

#include "graph/graph_object.h"
#include "python/call_keeper.h"

namespace graph {

// New nodes. Of one thread; the GIL is held.
class Recording final : private CallKeeper {
 public:
  // After some nodes of the driver's; null: after everything. With `is_one_call`, the calls inside
  // are parts of one, and not nodes of their own.
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

// Calls again that replace those of nodes in a row.
class Replacement final : private CallKeeper {
 public:
  Replacement(GraphObject* graph, size_t first, size_t count);
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement() { Leave(before_); }

  // Whether the launches before this node of the driver's were the same ones.
  bool KeptForm(size_t end) const { return recording_.KeptForm(end); }
  Ref TakeKept() { return std::move(kept_); }

 private:
  void Keep(Ref object) override;
  void Begin() override {}
  void End(PyObject*, PyObject* const*, size_t, PyObject*) override {}
  void NoteLaunch(PyObject*, PyObject* const*, size_t) override {}

  culaunch::GraphRecording recording_;
  CallKeeper* before_;
  Ref kept_;
};

}  // namespace graph
