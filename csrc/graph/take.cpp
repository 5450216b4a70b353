// Copies, host functions and more in the graph that this thread records.
#include <memory>

#include "driver/driver_object.h"
#include "driver/errors.h"
#include "graph/graph_object.h"

namespace graph {

namespace {

PyObject* Take(std::unique_ptr<culaunch::GraphNode> node, const char* what) {
  culaunch::LaunchRecorder* recorder = culaunch::LaunchRecorder::Current();
  if (recorder == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "this thread records no graph");
    return nullptr;
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    const CUresult code = WithoutGil([&] { return recorder->TakeNode(std::move(node)); });
    recorder->StatusOf(code, what).OrThrow();
    Py_RETURN_NONE;
  });
}

// Runs in one of the driver's threads.
void CUDA_CB RunHost(void* data) {
  const HoldGil held;
  auto* callable = static_cast<PyObject*>(data);
  const Ref result(PyObject_CallNoArgs(callable));
  if (!result) PyErr_WriteUnraisable(callable);
}

}  // namespace

// take_copy(driver, device, (address, is_host), (address, is_host), bytes)
PyObject* TakeCopy(PyObject*, PyObject* args) {
  PyObject* driver_object = nullptr;
  int ordinal = 0, to_host = 0, from_host = 0;
  unsigned long long to = 0, from = 0;
  Py_ssize_t bytes = 0;
  if (!PyArg_ParseTuple(args, "Oi(Kp)(Kp)n:take_copy", &driver_object, &ordinal, &to, &to_host,
                        &from, &from_host, &bytes)) {
    return nullptr;
  }
  culaunch::Driver* driver = DriverOf(driver_object);
  if (driver == nullptr) return nullptr;
  const auto place = [](unsigned long long address, int is_host) {
    return culaunch::GraphNode::Place{reinterpret_cast<void*>(static_cast<uintptr_t>(address)),
                                      is_host != 0};
  };
  return Take(culaunch::GraphNode::Copy(ordinal, place(to, to_host), place(from, from_host),
                                        static_cast<size_t>(bytes)),
              "adding a copy");
}

// take_host(driver, callable): the owner of the graph keeps the callable alive.
PyObject* TakeHost(PyObject*, PyObject* args) {
  PyObject *driver_object, *callable;
  if (!PyArg_ParseTuple(args, "OO:take_host", &driver_object, &callable)) return nullptr;
  culaunch::Driver* driver = DriverOf(driver_object);
  if (driver == nullptr) return nullptr;
  auto node = std::make_unique<culaunch::GraphNode>(CU_GRAPH_NODE_TYPE_HOST);
  node->host = {RunHost, callable};
  return Take(std::move(node), "adding a host function");
}

// take_child(driver, graph): a copy of the graph becomes the node.
PyObject* TakeChild(PyObject*, PyObject* args) {
  PyObject *driver_object, *child;
  if (!PyArg_ParseTuple(args, "OO!:take_child", &driver_object, GraphType(), &child)) {
    return nullptr;
  }
  culaunch::Driver* driver = DriverOf(driver_object);
  if (driver == nullptr) return nullptr;
  auto node = Guarded<std::unique_ptr<culaunch::GraphNode>>(nullptr, nullptr, [&] {
    return WithoutGil([&] { return culaunch::Graph::NodeOf(*GraphOf(child)->graph); });
  });
  return node != nullptr ? Take(std::move(node), "adding a graph") : nullptr;
}

// take_empty(driver)
PyObject* TakeEmpty(PyObject*, PyObject* args) {
  PyObject* driver_object = nullptr;
  if (!PyArg_ParseTuple(args, "O:take_empty", &driver_object)) return nullptr;
  culaunch::Driver* driver = DriverOf(driver_object);
  if (driver == nullptr) return nullptr;
  return Take(std::make_unique<culaunch::GraphNode>(), "adding an empty node");
}

// take_conditional(driver, condition, type, bodies)
PyObject* TakeConditional(PyObject*, PyObject* args) {
  PyObject* driver_object = nullptr;
  unsigned long long condition = 0;
  int type = 0;
  unsigned bodies = 0;
  if (!PyArg_ParseTuple(args, "OKiI:take_conditional", &driver_object, &condition, &type,
                        &bodies)) {
    return nullptr;
  }
  if (DriverOf(driver_object) == nullptr) return nullptr;
  return Take(culaunch::GraphNode::Conditional(
                  condition, static_cast<CUgraphConditionalNodeType>(type), bodies),
              "adding a conditional node");
}

}  // namespace graph
