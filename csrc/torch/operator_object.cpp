#include "torch/operator_object.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "driver/errors.h"
#include "python/type_builder.h"
#include "torch/plain_calls.h"
#include "torch/written_arguments.h"

namespace torch_operators {

namespace {

// How an operator is called. Set as a whole. The previous one is kept, because a call may use it.
struct Way {
  Ref function;           // null if the dispatcher cannot be bypassed
  Ref dispatcher;         // called unless the call is plain
  std::string arguments;  // one letter for each, as for bind_operator
  size_t required = 0;
  WrittenArguments written;
  size_t results = 0;  // returned as a tuple if more than one
  bool has_gradients = false;
  // Whether torch's dispatcher calls it, with the keys first. Otherwise it is called instead of the
  // operator.
  bool is_kernel = false;
  std::unique_ptr<Way> before;
};

struct OperatorObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::atomic<Way*> way;  // owned
};

OperatorObject* Self(PyObject* self) { return reinterpret_cast<OperatorObject*>(self); }

bool IsPlainList(const Way& way, PyObject* object);

bool IsPlainTensorOf(const Way& way, PyObject* object) {
  const Plain plain = IsPlainTensor(object);
  return plain == Plain::kYes ||
         (plain == Plain::kMayHaveGradient && !(way.has_gradients && IsGradientRecorded()));
}

// Whether torch would pass the argument unchanged.
bool IsAsItIs(const Way& way, char code, PyObject* object) {
  if (code >= 'a') {
    if (object == Py_None) return true;
    code = static_cast<char>(code - 'a' + 'A');
  }
  switch (code) {
    case 'T':
      return IsPlainTensorOf(way, object);
    case 'L':
      return IsPlainList(way, object);
    case 'I': {
      if (PyLong_CheckExact(object) == 0) return false;
      int overflow = 0;
      PyLong_AsLongLongAndOverflow(object, &overflow);
      return overflow == 0;
    }
    case 'F':
      return PyFloat_CheckExact(object) != 0;
    case 'B':
      return PyBool_Check(object) != 0;
    case 'S':
      return PyUnicode_CheckExact(object) != 0;
    default:
      return false;
  }
}

bool IsPlainList(const Way& way, PyObject* object) {
  if (PyList_CheckExact(object) == 0) return false;
  for (Py_ssize_t i = 0; i < PyList_Size(object); ++i) {
    const Ref item(PySequence_GetItem(object, i));
    if (!item || !IsPlainTensorOf(way, item.get())) return false;
  }
  return true;
}

bool IsPlainCall(const Way& way, PyObject* const* args, size_t count) {
  if (!way.function || count < way.required || count > way.arguments.size()) return false;
  if (way.is_kernel ? !HasPlainKeys() : !IsPlainThread()) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!IsAsItIs(way, way.arguments[i], args[i])) return false;
  }
  return true;
}

// torch does not count the results of a Python kernel, and reads types past the end of its schema.
PyObject* AsManyResults(const Way& way, Ref result) {
  if (way.results <= 1 || !result) return result.release();
  if (PyTuple_CheckExact(result.get()) == 0) result = Ref(PySequence_Tuple(result.get()));
  if (!result) return nullptr;
  const auto count = static_cast<size_t>(PyTuple_Size(result.get()));
  if (CULAUNCH_UNLIKELY(count != way.results)) {
    PyErr_Format(PyExc_TypeError,
                 "the function returned a tuple of %zu, but its operator returns %zu values", count,
                 way.results);
    return nullptr;
  }
  return result.release();
}

PyObject* CallOperator(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keyword_names) {
  const Way* way = Self(callable)->way.load(std::memory_order_acquire);
  if (way == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "the operator is not registered");
    return nullptr;
  }
  const size_t first = way->is_kernel ? 1 : 0;
  const size_t all = ArgumentCount(nargsf);
  PyObject* const* values = args + first;
  // torch also accepts names that do not exist, so leave them to it.
  const bool has_names = keyword_names != nullptr && PyTuple_Size(keyword_names) != 0;
  if (has_names || all < first || !IsPlainCall(*way, values, all - first)) {
    return AsManyResults(
        *way, Ref(PyObject_Vectorcall(way->dispatcher.get(), args, nargsf, keyword_names)));
  }
  if (!CountWrittenArguments(way->written, values, all - first)) return nullptr;
  return AsManyResults(*way,
                       Ref(PyObject_Vectorcall(way->function.get(), values, all - first, nullptr)));
}

PyObject* New(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* object = PyType_GenericAlloc(type, 0);
  if (object == nullptr) return nullptr;
  Self(object)->vectorcall = CallOperator;
  new (&Self(object)->way) std::atomic<Way*>(nullptr);
  return object;
}

int Traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  for (const Way* way = Self(object)->way.load(); way != nullptr; way = way->before.get()) {
    Py_VISIT(way->function.get());
    Py_VISIT(way->dispatcher.get());
  }
  return 0;
}

int Clear(PyObject* object) {
  delete Self(object)->way.exchange(nullptr);
  return 0;
}

void Dealloc(PyObject* object) {
  DeallocCollected(object, [object] { Clear(object); });
}

// _set_way(function, dispatcher, arguments, required, has_gradients, results, written, is_kernel)
PyObject* SetWay(PyObject* self, PyObject* args) {
  PyObject *function, *dispatcher, *written;
  const char* arguments;
  Py_ssize_t required, results;
  int has_gradients, is_kernel;
  if (!PyArg_ParseTuple(args, "OOsnpnO!p:_set_way", &function, &dispatcher, &arguments, &required,
                        &has_gradients, &results, &PyTuple_Type, &written, &is_kernel)) {
    return nullptr;
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    auto way = std::make_unique<Way>();
    if (function != Py_None) way->function = Ref::Borrow(function);
    way->dispatcher = Ref::Borrow(dispatcher);
    way->arguments = arguments;
    way->required = static_cast<size_t>(required);
    way->has_gradients = has_gradients != 0;
    way->results = static_cast<size_t>(results);
    way->is_kernel = is_kernel != 0;
    if (!ReadWrittenArguments(written, &way->written)) return nullptr;
    way->before.reset(Self(self)->way.load(std::memory_order_acquire));
    Self(self)->way.store(way.release(), std::memory_order_release);
    Py_RETURN_NONE;
  });
}

}  // namespace

int AddOperatorType(PyObject* module) {
  return TypeBuilder("culaunch._core.TorchOperator", sizeof(OperatorObject), Py_TPFLAGS_BASETYPE)
                     .Slot(Py_tp_new, New)
                     .Slot(Py_tp_dealloc, Dealloc)
                     .Collected(Traverse, Clear)
                     .Callable(offsetof(OperatorObject, vectorcall))
                     .Method("_set_way", SetWay)
                     .AddTo(module) != nullptr
             ? 0
             : -1;
}

}  // namespace torch_operators
