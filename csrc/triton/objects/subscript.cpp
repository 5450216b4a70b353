#include "triton/objects/subscript.h"

#include <cstddef>

#include "python/type_builder.h"
#include "triton/dispatchers/dispatcher_object.h"
#include "triton/objects/dispatcher.h"

namespace triton {

namespace {

// A kernel's dispatcher from an earlier lookup. An attribute lookup touches as much memory as the
// rest of a subscript. The entry is valid until any dispatcher starts or stops serving a kernel.
struct Known {
  PyObject* kernel;              // borrowed
  DispatcherObject* dispatcher;  // borrowed
  uint64_t changes;              // g_served_changes
};

struct SubscriptObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  static constexpr size_t kKnown = 32;
  Known known[kKnown];  // by the kernel's address
  PyObject* attribute;  // owned: the attribute that holds a kernel's dispatcher
  PyObject* original;   // owned: Triton's method that this replaces
  PyObject* find;       // owned: called as find(kernel, grid) if there is no dispatcher yet
  PyObject* bound;      // owned: the type of bound methods
  PyObject* kinds;      // owned: the types whose objects may have a dispatcher
};

SubscriptObject* SubscriptOf(PyObject* self) { return reinterpret_cast<SubscriptObject*>(self); }

// Whether it is an object of Triton's own types, which may have a dispatcher.
bool IsKernel(SubscriptObject* self, PyObject* kernel) {
  const int is_kernel = PyObject_IsInstance(kernel, self->kinds);
  if (is_kernel < 0) PyErr_Clear();
  return is_kernel != 0;
}

// The dispatcher that serves a kernel: borrowed; null without an error if there is none.
CULAUNCH_APART DispatcherObject* LookUpDispatcher(SubscriptObject* self, PyObject* kernel) {
  if (!IsKernel(self, kernel)) return nullptr;
  const Ref found(PyObject_GetAttr(kernel, self->attribute));
  if (!found) {
    PyErr_Clear();
    return nullptr;
  }
  if (PyObject_TypeCheck(found.get(), g_dispatcher_type) == 0) return nullptr;
  auto* dispatcher = reinterpret_cast<DispatcherObject*>(found.get());
  // A copy of a kernel has the original's dispatcher in its attribute, which does not serve the
  // copy.
  return dispatcher->served == kernel ? dispatcher : nullptr;
}

DispatcherObject* DispatcherOf(SubscriptObject* self, PyObject* kernel) {
#ifndef Py_GIL_DISABLED
  // Garbage-collected objects take 48 bytes or more.
  Known& known = self->known[reinterpret_cast<uintptr_t>(kernel) / 64 % SubscriptObject::kKnown];
  if (!CULAUNCH_UNLIKELY(known.kernel != kernel || known.changes != g_served_changes)) {
    return known.dispatcher;
  }
  DispatcherObject* dispatcher = LookUpDispatcher(self, kernel);
  if (dispatcher != nullptr) known = {kernel, dispatcher, g_served_changes};
  return dispatcher;
#else
  return LookUpDispatcher(self, kernel);
#endif
}

// The launcher of the dispatcher that serves a kernel. Null without an error if there is none, or
// if it cannot read the grid. The slow path then decides.
PyObject* QuickLauncher(SubscriptObject* self, PyObject* kernel, PyObject* grid) {
  DispatcherObject* dispatcher = DispatcherOf(self, kernel);
  if (dispatcher == nullptr) return nullptr;
  const bool is_exact = PyTuple_CheckExact(grid) != 0 && PyTuple_Size(grid) == 3;
  if (dispatcher->state->is_compiled && !is_exact) return nullptr;
  // Reading a grid may run Python, which may release the kernel's dispatcher.
  const Ref kept = Ref::Borrow(reinterpret_cast<PyObject*>(dispatcher));
  PyObject* launcher = LauncherFor(dispatcher, grid);
  if (launcher == nullptr) PyErr_Clear();
  return launcher;
}

PyObject* CallSubscript(PyObject* callable, PyObject* const* args, size_t nargsf,
                        PyObject* keyword_names) {
  SubscriptObject* self = SubscriptOf(callable);
  if (ArgumentCount(nargsf) == 2 && keyword_names == nullptr) {
    PyObject* launcher = QuickLauncher(self, args[0], args[1]);
    if (launcher != nullptr) return launcher;
    if (!IsKernel(self, args[0])) {
      return PyObject_Vectorcall(self->original, args, nargsf, nullptr);
    }
  }
  return PyObject_Vectorcall(self->find, args, nargsf, keyword_names);
}

PyObject* NewSubscript(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* attribute = nullptr;
  PyObject* original = nullptr;
  PyObject* find = nullptr;
  PyObject* bound = nullptr;
  PyObject* kinds = nullptr;
  if (!PyArg_ParseTuple(args, "UOOOO!:TritonSubscript", &attribute, &original, &find, &bound,
                        &PyTuple_Type, &kinds)) {
    return nullptr;
  }
  PyObject* object = PyType_GenericAlloc(type, 0);
  if (object == nullptr) return nullptr;
  SubscriptObject* self = SubscriptOf(object);
  self->vectorcall = CallSubscript;
  Py_INCREF(attribute);
  PyUnicode_InternInPlace(&attribute);
  self->attribute = attribute;
  self->original = Ref::Borrow(original).release();
  self->find = Ref::Borrow(find).release();
  self->bound = Ref::Borrow(bound).release();
  self->kinds = Ref::Borrow(kinds).release();
  return object;
}

PyObject* Bind(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) return Ref::Borrow(self).release();
  return PyObject_CallFunctionObjArgs(SubscriptOf(self)->bound, self, object, nullptr);
}

// This method copies the metadata of the method that it replaces.
PyObject* GetAttribute(PyObject* self, PyObject* name) {
  const bool is_of_type = PyUnicode_CompareWithASCIIString(name, "__doc__") == 0 ||
                          PyUnicode_CompareWithASCIIString(name, "__module__") == 0;
  if (!is_of_type) {
    PyObject* found = PyObject_GenericGetAttr(self, name);
    if (found != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return found;
    PyErr_Clear();
  }
  return PyObject_GetAttr(SubscriptOf(self)->original, name);
}

int TraverseSubscript(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(SubscriptOf(self)->original);
  Py_VISIT(SubscriptOf(self)->find);
  Py_VISIT(SubscriptOf(self)->bound);
  Py_VISIT(SubscriptOf(self)->kinds);
  return 0;
}

int ClearSubscript(PyObject* self) {
  Py_CLEAR(SubscriptOf(self)->original);
  Py_CLEAR(SubscriptOf(self)->find);
  Py_CLEAR(SubscriptOf(self)->bound);
  Py_CLEAR(SubscriptOf(self)->kinds);
  return 0;
}

void DeallocSubscript(PyObject* self) {
  DeallocCollected(self, [self] {
    ClearSubscript(self);
    Py_XDECREF(SubscriptOf(self)->attribute);
  });
}

}  // namespace

// As a method descriptor, it is called with the kernel, without a bound method.
int AddSubscriptType(PyObject* module) {
  const PyTypeObject* const type =
      TypeBuilder("culaunch._core.TritonSubscript", sizeof(SubscriptObject),
                  Py_TPFLAGS_METHOD_DESCRIPTOR)
          .Slot(Py_tp_new, NewSubscript)
          .Slot(Py_tp_dealloc, DeallocSubscript)
          .Slot(Py_tp_descr_get, Bind)
          .Slot(Py_tp_getattro, GetAttribute)
          .Collected(TraverseSubscript, ClearSubscript)
          .Callable(offsetof(SubscriptObject, vectorcall))
          .Member("__wrapped__", offsetof(SubscriptObject, original))
          .AddTo(module);
  return type != nullptr ? 0 : -1;
}

}  // namespace triton
