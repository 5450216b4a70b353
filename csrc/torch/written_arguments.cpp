#include "torch/written_arguments.h"

#include "arguments/torch/tensor_versions.h"

namespace torch_operators {

namespace {

bool CountList(PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    const Ref item(PySequence_GetItem(list, i));
    if (!item) return false;
    if (IsTorchTensor(item.get()) && !CountTensor(item.get())) return false;
  }
  return true;
}

}  // namespace

bool ReadWrittenArguments(PyObject* places, WrittenArguments* written) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(places); ++i) {
    const size_t place = PyLong_AsSize_t(PyTuple_GetItem(places, i));
    if (PyErr_Occurred() != nullptr) return false;
    written->push_back(place);
  }
  if (written->empty() || AreVersionsOpen()) return true;
  PyErr_SetString(PyExc_ValueError, "nothing counts versions: open_versions comes first");
  return false;
}

bool CountWrittenArguments(const WrittenArguments& written, PyObject* const* arguments,
                           size_t count) {
  if (written.empty()) return true;
  for (const size_t place : written) {
    PyObject* object = place < count ? arguments[place] : Py_None;
    const bool is_counted = IsTorchTensor(object) ? CountTensor(object)
                                                  : PyList_Check(object) == 0 || CountList(object);
    if (!is_counted) return false;
  }
  return true;
}

}  // namespace torch_operators
