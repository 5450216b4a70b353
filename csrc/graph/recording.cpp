#include "graph/recording.h"

#include "arguments/types/type_table.h"
#include "python/call_arguments.h"

namespace graph {

namespace {

void Append(Ref* list, Ref object) {
  if (!*list) *list = Ref(PyList_New(0));
  if (!*list || PyList_Append(list->get(), object.get()) != 0) PyErr_Clear();
}

std::unique_ptr<culaunch::GraphRecording> Start(GraphObject* graph,
                                                const culaunch::Graph::Nodes* after) {
  if (after == nullptr) return std::make_unique<culaunch::GraphRecording>(*graph->graph);
  return std::make_unique<culaunch::GraphRecording>(*graph->graph, *after);
}

// The first array among all calls determines the framework whose stream is current.
void FindLike(GraphObject* graph, PyObject* const* args, size_t count) {
  for (size_t i = 0; i < count && graph->like == nullptr; ++i) {
    TypeEntry scratch;
    const TypeEntry* entry = LookUpObject(args[i], &scratch);
    if (entry == nullptr) PyErr_Clear();
    if (entry != nullptr &&
        (entry->kind == ArgumentKind::kExchange || entry->kind == ArgumentKind::kCupy ||
         entry->kind == ArgumentKind::kArray)) {
      graph->like = Ref::Borrow(args[i]).release();
    }
  }
}

}  // namespace

Recording::Recording(GraphObject* graph, const culaunch::Graph::Nodes* after, bool is_one_call)
    : graph_(graph),
      recording_(Start(graph, after)),
      before_(Enter(this)),
      first_(graph->graph->size()),
      depth_(is_one_call ? 1 : 0) {}

void Recording::Keep(Ref object) { Append(&kept_, std::move(object)); }

void Recording::Begin() {
  if (depth_++ == 0) first_ = graph_->graph->size();
}

void Recording::End(PyObject* callable, PyObject* const* args, size_t count, PyObject* names) {
  if (callable != nullptr) FindLike(graph_, args, count);
  const size_t made = graph_->graph->size() - first_;
  if (--depth_ == 0 && callable != nullptr) Note(made, callable, args, count, names);
}

void Recording::NoteLaunch(PyObject* callable, PyObject* const* args, size_t count) {
  FindLike(graph_, args, count);
  if (depth_ == 0) Note(1, callable, args, count, nullptr);
}

// If there is no memory for the record, the nodes stay, like those of an unknown call.
void Recording::Note(size_t made, PyObject* callable, PyObject* const* args, size_t count,
                     PyObject* names) {
  if (made == 0) return;
  const size_t all =
      count + (names != nullptr ? static_cast<size_t>(PyTuple_Size(names)) : size_t{0});
  const Ref tuple = PositionalTuple(args, all);
  NodeObject* node = tuple ? AddNode(graph_, graph_->graph->size() - made, made, callable,
                                     tuple.get(), names, Py_None)
                           : nullptr;
  if (node != nullptr) node->kept = kept_.release();
  if (node == nullptr) PyErr_Clear();
}

Replacement::Replacement(GraphObject* graph, size_t first, size_t count)
    : recording_(std::in_place, *graph->graph, first, count), before_(Enter(this)) {}

void Replacement::Keep(Ref object) { Append(&kept_, std::move(object)); }

}  // namespace graph
