// _core.GraphNode: the nodes that one call added to a graph.
#include "driver/errors.h"
#include "graph/graph_object.h"
#include "graph/method_docs.h"
#include "graph/recording.h"
#include "python/small_buffer.h"
#include "python/type_builder.h"

namespace graph {

namespace {

PyTypeObject* g_node_type = nullptr;

constexpr char kDoc[] =
    "The part of a graph that one call added.\n\n"
    ":class:`culaunch.Graph` makes it. :meth:`update` sets other arguments.\n\n"
    "Examples\n--------\n"
    ">>> graph = cl.Graph()\n"
    ">>> node = graph.call(kernel[1, 256], y, x, 2.0, 256)\n"
    ">>> node.update(y, x, 3.0, 256)\n"
    ">>> graph.launch()\n"
    ">>> float(y.numpy()[0])\n"
    "3.0\n";

CULAUNCH_RARE PyObject* RaiseOtherForm(NodeObject* self) {
  PyErr_Format(PyExc_ValueError,
               "the call must launch the same kernels as when it was recorded, %zu node%s in the "
               "same order (it launches others with these arguments): record a new graph",
               self->count, self->count == 1 ? "" : "s");
  return nullptr;
}

CULAUNCH_RARE PyObject* RaiseNoCall() {
  PyErr_SetString(PyExc_TypeError,
                  "this node was not added by a repeatable call: add it with "
                  "graph.call(...) to update it");
  return nullptr;
}

// Repeat the call of a node. Null with a Python error set.
Ref CallAgain(NodeObject* self, PyObject* const* args, size_t count, PyObject* names,
              Replacement* replacement) {
  if (CULAUNCH_UNLIKELY(self->callable == nullptr)) return Ref(RaiseNoCall());
  Ref result(PyObject_Vectorcall(self->callable, args, count, names));
  const bool kept_form = replacement->KeptForm(self->first + self->count);
  if (CULAUNCH_UNLIKELY(!result)) {
    // A launch of another kernel is refused with its own message. This message says more.
    if (kept_form || PyErr_ExceptionMatches(PyExc_TypeError) != 0) return result;
    return PyErr_ExceptionMatches(PyExc_ValueError) != 0 ? Ref() : Ref(RaiseOtherForm(self));
  }
  return CULAUNCH_UNLIKELY(!kept_form) ? Ref(RaiseOtherForm(self)) : std::move(result);
}

void Take(NodeObject* self, Ref args, PyObject* names, Ref kept) {
  const Ref old_args(std::exchange(self->args, args.release()));
  const Ref old_names(std::exchange(self->names, Ref::Borrow(names).release()));
  const Ref old_kept(std::exchange(self->kept, kept.release()));
}

// update(*args, **keywords): repeat the call. Its launches replace the node's.
PyObject* Update(PyObject* object, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  NodeObject* self = NodeOf(object);
  Ref result;
  Ref kept;
  {
    Replacement replacement(self->graph, self->first, self->count);
    result = CallAgain(self, args, static_cast<size_t>(count), names, &replacement);
    kept = replacement.TakeKept();
  }
  if (!result) return nullptr;
  const Py_ssize_t all = count + (names != nullptr ? PyTuple_Size(names) : 0);
  Ref tuple(PyTuple_New(all));
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < all; ++i) {
    PyTuple_SetItem(tuple.get(), i, Ref::Borrow(args[i]).release());
  }
  Take(self, std::move(tuple), names, std::move(kept));
  return result.release();
}

int TraverseNode(PyObject* object, visitproc visit, void* arg) {
  NodeObject* self = NodeOf(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(reinterpret_cast<PyObject*>(self->graph));
  Py_VISIT(self->callable);
  Py_VISIT(self->args);
  Py_VISIT(self->kept);
  return 0;
}

// The list of its graph breaks the cycle, so the members stay until the node is freed.
int ClearNode(PyObject*) { return 0; }

void DeallocNode(PyObject* object) {
  DeallocCollected(object, [object] {
    NodeObject* self = NodeOf(object);
    Py_XDECREF(self->callable);
    Py_XDECREF(self->args);
    Py_XDECREF(self->names);
    Py_XDECREF(self->name);
    Py_XDECREF(self->kept);
    Py_XDECREF(reinterpret_cast<PyObject*>(self->graph));
  });
}

PyObject* Given(PyObject* object) {
  return Ref::Borrow(object != nullptr ? object : Py_None).release();
}
PyObject* GetGraph(PyObject* self, void*) {
  return Given(reinterpret_cast<PyObject*>(NodeOf(self)->graph));
}
PyObject* GetCallable(PyObject* self, void*) { return Given(NodeOf(self)->callable); }
PyObject* GetArgs(PyObject* self, void*) { return Given(NodeOf(self)->args); }
PyObject* GetNames(PyObject* self, void*) { return Given(NodeOf(self)->names); }
PyObject* GetName(PyObject* self, void*) { return Given(NodeOf(self)->name); }
PyObject* GetRange(PyObject* self, void*) {
  return Py_BuildValue("nn", static_cast<Py_ssize_t>(NodeOf(self)->first),
                       static_cast<Py_ssize_t>(NodeOf(self)->count));
}

}  // namespace

NodeObject* AddNode(GraphObject* graph, size_t first, size_t count, PyObject* callable,
                    PyObject* args, PyObject* names, PyObject* name) {
  Ref object(PyType_GenericAlloc(g_node_type, 0));
  if (!object) return nullptr;
  NodeObject* node = NodeOf(object.get());
  node->graph = GraphOf(Ref::Borrow(reinterpret_cast<PyObject*>(graph)).release());
  node->callable = Ref::Borrow(callable).release();
  node->args = Ref::Borrow(args).release();
  node->names = Ref::Borrow(names).release();
  node->name = Ref::Borrow(name).release();
  node->first = first;
  node->count = count;
  return PyList_Append(graph->nodes, object.get()) == 0 ? node : nullptr;
}

PyObject* UpdateAll(PyObject* object, PyObject* rows) {
  GraphObject* graph = GraphOf(object);
  const Ref all(PySequence_Tuple(rows));
  if (!all) return nullptr;
  // Python code may add nodes meanwhile.
  const Ref nodes(PyList_AsTuple(graph->nodes));
  if (!nodes) return nullptr;
  const Py_ssize_t count = PyTuple_Size(nodes.get());
  if (PyTuple_Size(all.get()) != count) {
    PyErr_Format(PyExc_ValueError, "rows must have a tuple for each of the %zd nodes (got %zd)",
                 count, PyTuple_Size(all.get()));
    return nullptr;
  }
  Replacement replacement(graph, 0, graph->graph->size());
  for (Py_ssize_t i = 0; i < count; ++i) {
    NodeObject* node = NodeOf(PyTuple_GetItem(nodes.get(), i));
    PyObject* row = PyTuple_GetItem(all.get(), i);
    if (!PyTuple_CheckExact(row)) {
      PyErr_Format(PyExc_TypeError, "rows[%zd] must be a tuple of arguments (got %U)", i,
                   Spelled(row).get());
      return nullptr;
    }
    const auto size = static_cast<size_t>(PyTuple_Size(row));
    SmallBuffer<PyObject*, 24> args(size);
    for (size_t k = 0; k < size; ++k) {
      args.data()[k] = PyTuple_GetItem(row, static_cast<Py_ssize_t>(k));
    }
    if (!CallAgain(node, args.data(), size, nullptr, &replacement)) return nullptr;
    Take(node, Ref::Borrow(row), nullptr, replacement.TakeKept());
  }
  Py_RETURN_NONE;
}

int AddNodeType(PyObject* module) {
  const auto update = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(Update));
  g_node_type =
      TypeBuilder("culaunch._core.GraphNode", sizeof(NodeObject), Py_TPFLAGS_DISALLOW_INSTANTIATION)
          .Slot(Py_tp_dealloc, DeallocNode)
          .Collected(TraverseNode, ClearNode)
          .Doc(kDoc)
          .Method("update", update, METH_FASTCALL | METH_KEYWORDS, kNodeUpdateDoc)
          .Property("graph", GetGraph, "The graph that it is a part of.")
          .Property("callable", GetCallable, "The callable; None for a node of another library.")
          .Property("args", GetArgs, "The arguments of the last call; those by name come last.")
          .Property("name", GetName, "The name that was given to it, or None.")
          .Property("_names", GetNames)
          .Property("_range", GetRange)
          .AddTo(module);
  return g_node_type != nullptr ? 0 : -1;
}

}  // namespace graph
