#include "elementwise/function.h"

#include <cstddef>
#include <new>
#include <vector>

#include "driver/errors.h"
#include "elementwise/call.h"
#include "python/call_arguments.h"
#include "python/recording.h"
#include "python/type_builder.h"
#include "python/upcalls.h"

namespace {

using elementwise::CompiledLayout;
using elementwise::ElementwiseCall;
using elementwise::ElementwiseObject;
using elementwise::Specialization;

PyTypeObject* g_elementwise_type = nullptr;

ElementwiseObject* Self(PyObject* self) { return reinterpret_cast<ElementwiseObject*>(self); }

PyObject* CallSlowly(PyObject* self, PyObject* const* args, size_t count, PyObject* names) {
  const Ref positional = PositionalTuple(args, count);
  const Ref keywords = KeywordDict(args, count, names);
  if (!positional || !keywords) return nullptr;
  return PyObject_CallMethod(self, methods::kCallSlowly, "OO", positional.get(), keywords.get());
}

bool AnyIsOf(PyTypeObject* type, PyObject* const* args, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (Py_TYPE(args[i]) == type) return true;
  }
  return false;
}

PyObject* CallElementwise(PyObject* callable, PyObject* const* args, size_t nargsf,
                          PyObject* names) {
  if (CULAUNCH_UNLIKELY(IsRecording())) {
    Ref recorded;
    if (RecordCall(callable, "call", args, ArgumentCount(nargsf), names, &recorded)) {
      return recorded.release();
    }
  }
  ElementwiseObject* self = Self(callable);
  const auto count = ArgumentCount(nargsf);
  const Py_ssize_t named = names != nullptr ? PyTuple_Size(names) : 0;
  PyObject* out = nullptr;
  bool is_plain = static_cast<Py_ssize_t>(count) == PyTuple_Size(self->parameters) && named <= 1;
  if (is_plain && named == 1) {
    is_plain = PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "out") == 0;
    out = args[count] != Py_None ? args[count] : nullptr;
  }
  if (!is_plain || count >= elementwise::kMaxOperands) {
    return CallSlowly(callable, args, count, names);
  }
  PyObject* delegate = self->delegate.load(std::memory_order_acquire);
  if (delegate != nullptr && !AnyIsOf(self->value_type, args, count)) {
    const auto is_separate = [&] {
      return ElementwiseCall(self, args, count).CheckOutputsOfReduction(out);
    };
    if (out != nullptr && !Guarded<bool>(nullptr, false, is_separate)) return nullptr;
    return PyObject_Vectorcall(delegate, args, count, names);
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    ElementwiseCall call(self, args, count);
    PyObject* result = call.Run(out);
    return call.fall_back ? CallSlowly(callable, args, count, names) : result;
  });
}

// Elementwise(name, parameters)
PyObject* New(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* name = nullptr;
  PyObject* parameters = nullptr;
  if (!PyArg_ParseTuple(args, "UO!:Elementwise", &name, &PyTuple_Type, &parameters)) return nullptr;
  PyObject* object = PyType_GenericAlloc(type, 0);
  if (object == nullptr) return nullptr;
  ElementwiseObject* self = Self(object);
  self->vectorcall = CallElementwise;
  self->name = Ref::Borrow(name).release();
  self->parameters = Ref::Borrow(parameters).release();
  new (&self->specializations) std::atomic<Specialization*>(nullptr);
  new (&self->driver) std::atomic<culaunch::Driver*>(nullptr);
  new (&self->delegate) std::atomic<PyObject*>(nullptr);
  new (&self->last) std::atomic<const TypeEntry*>(nullptr);
  return object;
}

int Traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(Self(object)->delegate.load());
  for (Specialization* it = Self(object)->specializations.load(); it != nullptr; it = it->next) {
    Py_VISIT(it->token);
    for (CompiledLayout* one = it->layouts.load(); one != nullptr; one = one->next) {
      Py_VISIT(reinterpret_cast<PyObject*>(one->kernel));
    }
  }
  return 0;
}

// A call may arrive until the object is freed, so the members that it needs stay until then.
// Python's half, which may hold a cycle, is the subclass's dict, and is cleared with it.
int Clear(PyObject*) { return 0; }

void Dealloc(PyObject* object) {
  DeallocCollected(object, [self = Self(object)] {
    while (Specialization* special = self->specializations.load()) {
      self->specializations = special->next;
      while (CompiledLayout* compiled = special->layouts.load()) {
        special->layouts = compiled->next;
        Py_DECREF(reinterpret_cast<PyObject*>(compiled->kernel));
        delete compiled;
      }
      Py_XDECREF(special->token);
      delete special;
    }
    Py_XDECREF(self->delegate.load());
    Py_XDECREF(reinterpret_cast<PyObject*>(self->value_type));
    Py_XDECREF(self->name);
    Py_XDECREF(self->parameters);
  });
}

// _delegate(function, value_type)
PyObject* Delegate(PyObject* object, PyObject* args) {
  PyObject* function = nullptr;
  PyObject* type = nullptr;
  if (!PyArg_ParseTuple(args, "OO!:_delegate", &function, &PyType_Type, &type)) return nullptr;
  ElementwiseObject* self = Self(object);
  if (self->value_type == nullptr) {
    self->value_type = reinterpret_cast<PyTypeObject*>(Ref::Borrow(type).release());
  }
  PyObject* none = nullptr;
  // The first delegate stays, because another thread may be calling it.
  if (self->delegate.compare_exchange_strong(none, function)) Ref::Borrow(function).release();
  Py_RETURN_NONE;
}

// _describe(arguments, out)
PyObject* Describe(PyObject* object, PyObject* args) {
  PyObject* arguments = nullptr;
  PyObject* out = nullptr;
  if (!PyArg_ParseTuple(args, "O!O:_describe", &PyTuple_Type, &arguments, &out)) return nullptr;
  std::vector<PyObject*> items;
  for (Py_ssize_t i = 0; i < PyTuple_Size(arguments); ++i) {
    items.push_back(PyTuple_GetItem(arguments, i));
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    ElementwiseCall call(Self(object), items.data(), items.size());
    return call.Describe(out != Py_None ? out : nullptr);
  });
}

}  // namespace

int AddElementwiseType(PyObject* module) {
  g_elementwise_type =
      TypeBuilder("culaunch._core.Elementwise", sizeof(ElementwiseObject), Py_TPFLAGS_BASETYPE)
          .Slot(Py_tp_new, New)
          .Slot(Py_tp_dealloc, Dealloc)
          .Collected(Traverse, Clear)
          .Callable(offsetof(ElementwiseObject, vectorcall))
          .Method("_delegate", Delegate)
          .Method("_describe", Describe)
          .Method("_set_busy_threads", elementwise::SetBusyThreads, METH_VARARGS | METH_STATIC)
          .AddTo(module);
  return g_elementwise_type != nullptr ? 0 : -1;
}
