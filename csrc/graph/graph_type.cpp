// _core.Graph: a culaunch::Graph, its nodes by call, and its launches.
#include <culaunch/guard.h>

#include "arguments/convert.h"
#include "driver/driver_object.h"
#include "driver/errors.h"
#include "graph/graph_object.h"
#include "graph/method_docs.h"
#include "graph/recording.h"
#include "python/call_arguments.h"
#include "python/type_builder.h"
#include "python/upcalls.h"

namespace graph {

namespace {

PyTypeObject* g_graph_type = nullptr;

// Graph(driver, handle=0, is_own=False): an empty graph, a copy of another library's graph, or this
// graph itself.
PyObject* NewGraph(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* driver = nullptr;
  unsigned long long handle = 0;
  int is_own = 0;
  if (!PyArg_ParseTuple(args, "O|Kp:Graph", &driver, &handle, &is_own)) return nullptr;
  culaunch::Driver* table = DriverOf(driver);
  if (table == nullptr) return nullptr;
  auto* other = reinterpret_cast<CUgraph>(static_cast<uintptr_t>(handle));
  auto* made = Guarded<culaunch::Graph*>(nullptr, nullptr, [&] {
    return WithoutGil([&]() -> culaunch::Graph* {
      if (other == nullptr) return new culaunch::Graph(*table);
      auto graph = is_own != 0 ? culaunch::Graph::Owning(other, *table)
                               : culaunch::Graph::CopyOf(other, *table);
      return graph.release();
    });
  });
  if (made == nullptr) return nullptr;
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  GraphOf(self)->driver = Ref::Borrow(driver).release();
  GraphOf(self)->graph = made;
  GraphOf(self)->nodes = PyList_New(0);
  const Ref none(PyTuple_New(0));
  for (size_t i = 0; i < made->size() && GraphOf(self)->nodes != nullptr && none; ++i) {
    if (AddNode(GraphOf(self), i, 1, nullptr, none.get(), nullptr, Py_None) == nullptr) break;
  }
  if (PyErr_Occurred() == nullptr) return self;
  Py_DECREF(self);
  return nullptr;
}

int TraverseGraph(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(GraphOf(self)->nodes);
  Py_VISIT(GraphOf(self)->like);
  Py_VISIT(GraphOf(self)->owner);
  return 0;
}

// A body keeps its owner, whose graph has it: the list of nodes of the owner breaks the cycle.
int ClearGraph(PyObject* self) {
  if (GraphOf(self)->nodes != nullptr)
    PyList_SetSlice(GraphOf(self)->nodes, 0, PY_SSIZE_T_MAX, nullptr);
  Py_CLEAR(GraphOf(self)->like);
  return 0;
}

void DeallocGraph(PyObject* self) {
  DeallocCollected(self, [self] {
    GraphObject* own = GraphOf(self);
    delete own->recording;
    if (own->owner == nullptr) {
      WithoutGil([own] {
        delete own->graph;
        return 0;
      });
    }
    Py_XDECREF(own->nodes);
    Py_XDECREF(own->like);
    Py_XDECREF(own->owner);
    Py_XDECREF(own->driver);
  });
}

// The driver's nodes for a tuple of numbers. False with a Python error set.
bool ReadAfter(GraphObject* self, PyObject* tuple, culaunch::Graph::Nodes* after) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
    const size_t index = PyLong_AsSize_t(PyTuple_GetItem(tuple, i));
    if (PyErr_Occurred() != nullptr) return false;
    if (index >= self->graph->size()) {
      PyErr_Format(PyExc_ValueError, "the graph has no node %zu", index);
      return false;
    }
    after->push_back({index});
  }
  return true;
}

PyObject* Begin(PyObject* object, PyObject*) {
  GraphObject* self = GraphOf(object);
  if (self->recording != nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "the graph is being recorded: leave that block first");
    return nullptr;
  }
  self->recording = new Recording(self, nullptr, false);
  Py_RETURN_NONE;
}

PyObject* End(PyObject* object, PyObject*) {
  GraphObject* self = GraphOf(object);
  if (self->recording == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "the graph is not being recorded");
    return nullptr;
  }
  const std::unique_ptr<Recording> recording(std::exchange(self->recording, nullptr));
  const Ref none(PyTuple_New(0));
  // Calls that provided no description, such as those of Triton kernels.
  const Ref nodes(PyList_GetSlice(self->nodes, 0, PY_SSIZE_T_MAX));
  const Py_ssize_t known = nodes ? PyList_Size(nodes.get()) : 0;
  std::vector<bool> has_node(self->graph->size());
  for (Py_ssize_t i = 0; i < known; ++i) {
    const NodeObject* node = NodeOf(PyList_GetItem(nodes.get(), i));
    for (size_t k = 0; k < node->count; ++k) has_node[node->first + k] = true;
  }
  NodeObject* last = nullptr;
  for (size_t i = 0; i < has_node.size() && none; ++i) {
    if (has_node[i]) continue;
    last = AddNode(self, i, 1, nullptr, none.get(), nullptr, Py_None);
    if (last == nullptr) return nullptr;
  }
  Ref kept = recording->TakeKept();
  if (kept && last != nullptr) last->kept = kept.release();
  if (PyErr_Occurred() != nullptr) return nullptr;
  Py_RETURN_NONE;
}

// _call(callable, args, keywords, after, name) -> a node, and the result of the call. `after` is
// None or a tuple of numbers; `keywords` a dict.
PyObject* Call(PyObject* object, PyObject* arguments) {
  GraphObject* self = GraphOf(object);
  PyObject *callable, *args, *keywords, *after, *name;
  if (!PyArg_ParseTuple(arguments, "OO!O!OO:_call", &callable, &PyTuple_Type, &args, &PyDict_Type,
                        &keywords, &after, &name)) {
    return nullptr;
  }
  culaunch::Graph::Nodes nodes;
  if (after != Py_None && !ReadAfter(self, after, &nodes)) return nullptr;
  FlatArguments flat;
  if (!flat.Take(args, keywords)) return nullptr;
  Ref result;
  Ref kept;
  size_t first = 0;
  {
    Recording recording(self, after != Py_None ? &nodes : nullptr, true);
    result = Ref(PyObject_Vectorcall(callable, flat.values.data(), flat.count, flat.names.get()));
    first = recording.first();
    kept = recording.TakeKept();
  }
  if (!result) return nullptr;
  const size_t count = self->graph->size() - first;
  if (count == 0) {
    PyErr_SetString(PyExc_ValueError,
                    "the call launched nothing that a graph can record: a graph records launches, "
                    "copies and fills of culaunch");
    return nullptr;
  }
  const Ref tuple = PositionalTuple(flat.values.data(), flat.values.size());
  if (!tuple) return nullptr;
  NodeObject* node = AddNode(self, first, count, callable, tuple.get(), flat.names.get(), name);
  if (node == nullptr) return nullptr;
  node->kept = kept.release();
  return Py_BuildValue("OO", reinterpret_cast<PyObject*>(node), result.get());
}

// _create_condition(value): a handle; None as the value: a kernel sets it first.
PyObject* CreateCondition(PyObject* object, PyObject* value) {
  const unsigned long number = value == Py_None ? 0 : PyLong_AsUnsignedLong(value);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    return PyLong_FromUnsignedLongLong(WithoutGil([&] {
      culaunch::Graph& graph = *GraphOf(object)->graph;
      return value == Py_None ? graph.CreateCondition()
                              : graph.CreateCondition(static_cast<unsigned>(number));
    }));
  });
}

// _body(type, node, number): a body of a conditional node as an object of a type that is derived
// from this one.
PyObject* Body(PyObject* object, PyObject* args) {
  PyObject* type = nullptr;
  Py_ssize_t index = 0, body = 0;
  if (!PyArg_ParseTuple(args, "O!nn:_body", &PyType_Type, &type, &index, &body)) return nullptr;
  GraphObject* self = GraphOf(object);
  auto* derived = reinterpret_cast<PyTypeObject*>(type);
  const auto node = static_cast<size_t>(index);
  if (PyType_IsSubtype(derived, g_graph_type) == 0 || node >= self->graph->size() ||
      static_cast<size_t>(body) >= self->graph->node(node).bodies.size()) {
    PyErr_SetString(PyExc_ValueError, "the node has no such body");
    return nullptr;
  }
  const Ref nodes(PyList_New(0));
  PyObject* made = nodes ? PyType_GenericAlloc(derived, 0) : nullptr;
  if (made == nullptr) return nullptr;
  GraphOf(made)->driver = Ref::Borrow(self->driver).release();
  GraphOf(made)->owner = Ref::Borrow(object).release();
  GraphOf(made)->graph = &self->graph->Body({node}, static_cast<size_t>(body));
  GraphOf(made)->nodes = Ref::Borrow(nodes.get()).release();
  return made;
}

PyObject* Raise(GraphObject* self, CUresult code, const char* what) {
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    const culaunch::Status status = WithoutGil([&] { return self->graph->StatusOf(code, what); });
    RaiseError(status.error(), "LaunchError");
    return nullptr;
  });
}

// The stream of a launch: the given one, or the current stream of the first array's framework.
bool FindStream(GraphObject* self, PyObject* given, culaunch::Stream* stream) {
  if (given != nullptr && given != Py_None) {
    size_t handle = PyLong_CheckExact(given) ? PyLong_AsSize_t(given) : size_t(-1);
    if (handle == size_t(-1)) {  // not an int, or too large, which Python reports
      PyErr_Clear();
      const Ref found = CallUp(Upcall::kStreamHandle, "(O)", given);
      if (!found) return false;
      handle = PyLong_AsSize_t(found.get());
    }
    stream->handle = reinterpret_cast<CUstream>(handle);
    return PyErr_Occurred() == nullptr;
  }
  if (self->like == nullptr) return true;
  TypeEntry scratch;
  const TypeEntry* entry = LookUpObject(self->like, &scratch);
  if (entry == nullptr) return false;
  Conversion conversion(*reinterpret_cast<DriverObject*>(self->driver)->driver);
  ArrayData data;
  const Mismatch mismatch = ReadArgumentArray(conversion, *entry, self->like, &data);
  if (mismatch != Mismatch::kNone && PyErr_Occurred() == nullptr) {
    PyErr_SetString(PyExc_ValueError,
                    "the current stream of the graph's arrays is not known: give stream=");
  }
  if (mismatch != Mismatch::kNone) return false;
  *stream = {conversion.stream, conversion.ordinal};
  return true;
}

using Step = CUresult (culaunch::Graph::*)(culaunch::Stream);

PyObject* InStream(PyObject* object, PyObject* const* args, Py_ssize_t count, PyObject* names,
                   Step step, const char* name, const char* what) {
  GraphObject* self = GraphOf(object);
  const bool is_named = names != nullptr && PyTuple_Size(names) == 1 &&
                        PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "stream") == 0;
  if (count + (names != nullptr ? PyTuple_Size(names) : 0) > 1 ||
      (names != nullptr && !is_named && PyTuple_Size(names) != 0)) {
    PyErr_Format(PyExc_TypeError, "%s takes one argument, stream", name);
    return nullptr;
  }
  culaunch::Stream stream;
  if (!FindStream(self, count != 0 || is_named ? args[0] : nullptr, &stream)) return nullptr;
  const CUresult code = WithoutGil([&] { return (self->graph->*step)(stream); });
  if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) return Raise(self, code, what);
  Py_RETURN_NONE;
}

PyObject* Launch(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return InStream(self, args, count, names, &culaunch::Graph::TryLaunch, "launch",
                  "launching the graph");
}
PyObject* Upload(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return InStream(self, args, count, names, &culaunch::Graph::TryUpload, "upload",
                  "uploading the graph");
}

PyObject* Instantiate(PyObject* object, PyObject*) {
  GraphObject* self = GraphOf(object);
  const CUresult code = WithoutGil([&] { return self->graph->TryInstantiate(); });
  if (code != CUDA_SUCCESS) return Raise(self, code, "instantiating the graph");
  Py_RETURN_NONE;
}

// _set_enabled(number, is_enabled)
PyObject* SetEnabled(PyObject* object, PyObject* args) {
  Py_ssize_t index = 0;
  int is_enabled = 0;
  if (!PyArg_ParseTuple(args, "np:_set_enabled", &index, &is_enabled)) return nullptr;
  GraphObject* self = GraphOf(object);
  const CUresult code = WithoutGil(
      [&] { return self->graph->SetEnabled({static_cast<size_t>(index)}, is_enabled != 0); });
  if (code != CUDA_SUCCESS) return Raise(self, code, "enabling a node");
  Py_RETURN_NONE;
}

// _describe(number) -> type, name of a kernel, grid, block, numbers of the nodes before it
PyObject* Describe(PyObject* object, PyObject* number) {
  const size_t index = PyLong_AsSize_t(number);
  if (PyErr_Occurred() != nullptr || index >= GraphOf(object)->graph->size()) return nullptr;
  const culaunch::GraphNode& node = GraphOf(object)->graph->node(index);
  Ref after(PyTuple_New(static_cast<Py_ssize_t>(node.after.size())));
  for (size_t i = 0; after && i < node.after.size(); ++i) {
    PyTuple_SetItem(after.get(), static_cast<Py_ssize_t>(i), PyLong_FromSize_t(node.after[i]));
  }
  const CUlaunchConfig& config = node.config;
  return Py_BuildValue("is(III)(III)N", static_cast<int>(node.type), node.name.c_str(),
                       config.gridDimX, config.gridDimY, config.gridDimZ, config.blockDimX,
                       config.blockDimY, config.blockDimZ, after.release());
}

PyObject* GetGraphHandle(PyObject* object, void*) {
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    return PyLong_FromVoidPtr(WithoutGil([&] { return GraphOf(object)->graph->handle(); }));
  });
}
PyObject* GetExecutable(PyObject* object, void*) {
  return Guarded<PyObject*>("LaunchError", nullptr, [&] {
    return PyLong_FromVoidPtr(WithoutGil([&] { return GraphOf(object)->graph->executable(); }));
  });
}
PyObject* GetNodes(PyObject* object, void*) { return PyList_AsTuple(GraphOf(object)->nodes); }
PyObject* GetSize(PyObject* object, void*) {
  return PyLong_FromSize_t(GraphOf(object)->graph->size());
}
PyObject* GetDevice(PyObject* object, void*) {
  return PyLong_FromLong(WithoutGil([&] { return GraphOf(object)->graph->ordinal(); }));
}
PyObject* GetDriver(PyObject* object, void*) {
  return Ref::Borrow(GraphOf(object)->driver).release();
}

PyObject* GetOwner(PyObject* object, void*) {
  PyObject* owner = GraphOf(object)->owner;
  return Ref::Borrow(owner != nullptr ? owner : Py_None).release();
}

template <class Function>
PyCFunction Untyped(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

}  // namespace

PyTypeObject* GraphType() { return g_graph_type; }

int AddGraphType(PyObject* module) {
  constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;
  g_graph_type =
      TypeBuilder("culaunch._core.Graph", sizeof(GraphObject), Py_TPFLAGS_BASETYPE)
          .Slot(Py_tp_new, NewGraph)
          .Slot(Py_tp_dealloc, DeallocGraph)
          .Collected(TraverseGraph, ClearGraph)
          .Method("_begin", Begin, METH_NOARGS)
          .Method("_end", End, METH_NOARGS)
          .Method("_call", Call)
          .Method("_create_condition", CreateCondition, METH_O)
          .Method("_body", Body)
          .Method("_set_enabled", SetEnabled)
          .Method("_describe", Describe, METH_O)
          .Method("launch", Untyped(Launch), kFast, kLaunchDoc)
          .Method("upload", Untyped(Upload), kFast, kUploadDoc)
          .Method("update_all", UpdateAll, METH_O, kUpdateAllDoc)
          .Method("instantiate", Instantiate, METH_NOARGS, kInstantiateDoc)
          .Property("handle", GetGraphHandle,
                    "The CUgraph, with the arguments that its nodes have now.")
          .Property("executable", GetExecutable, "The CUgraphExec, created when it is needed.")
          .Property("nodes", GetNodes, "The nodes, in the order in which they were added.")
          .Property("device", GetDevice, "The ordinal of the device of the first node.")
          .Property("_size", GetSize)
          .Property("_driver", GetDriver)
          .Property("_owner", GetOwner)
          .AddTo(module);
  return g_graph_type != nullptr ? 0 : -1;
}

}  // namespace graph
