#include "triton/subscript.h"

#include <structmember.h>

#include <cstddef>

#include "triton/dispatcher.h"
#include "triton/dispatcher_object.h"

namespace triton {

namespace {

struct SubscriptObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* attribute;  // owned: the name under which a kernel has its dispatcher
  PyObject* original;   // owned: the method of Triton's that this stands for
  PyObject* find;       // owned: called as find(kernel, grid) where there is no dispatcher yet
  PyObject* bound;      // owned: the type of bound methods
};

SubscriptObject* Self(PyObject* self) { return reinterpret_cast<SubscriptObject*>(self); }

// The launcher of the dispatcher that serves a kernel. Null without an error where there is none,
// or where the grid is one that it does not read: the slow way says what to do.
PyObject* QuickLauncher(SubscriptObject* self, PyObject* kernel, PyObject* grid) {
  const Ref found(PyObject_GetAttr(kernel, self->attribute));
  if (!found) {
    PyErr_Clear();
    return nullptr;
  }
  if (PyObject_TypeCheck(found.get(), g_dispatcher_type) == 0) return nullptr;
  auto* dispatcher = reinterpret_cast<DispatcherObject*>(found.get());
  // A copy of a kernel has the dispatcher of the one that it was copied from.
  if (dispatcher->served != kernel) return nullptr;
  PyObject* launcher = LauncherFor(dispatcher, grid);
  if (launcher == nullptr) PyErr_Clear();
  return launcher;
}

PyObject* CallSubscript(PyObject* callable, PyObject* const* args, size_t nargsf,
                        PyObject* keyword_names) {
  SubscriptObject* self = Self(callable);
  if (ArgumentCount(nargsf) == 2 && keyword_names == nullptr) {
    PyObject* launcher = QuickLauncher(self, args[0], args[1]);
    if (launcher != nullptr) return launcher;
  }
  return PyObject_Vectorcall(self->find, args, nargsf, keyword_names);
}

PyObject* New(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* attribute = nullptr;
  PyObject* original = nullptr;
  PyObject* find = nullptr;
  PyObject* bound = nullptr;
  if (!PyArg_ParseTuple(args, "UOOO:TritonSubscript", &attribute, &original, &find, &bound)) {
    return nullptr;
  }
  PyObject* object = PyType_GenericAlloc(type, 0);
  if (object == nullptr) return nullptr;
  SubscriptObject* self = Self(object);
  self->vectorcall = CallSubscript;
  Py_INCREF(attribute);
  PyUnicode_InternInPlace(&attribute);
  self->attribute = attribute;
  self->original = Ref::Borrow(original).release();
  self->find = Ref::Borrow(find).release();
  self->bound = Ref::Borrow(bound).release();
  return object;
}

PyObject* Bind(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) return Ref::Borrow(self).release();
  return PyObject_CallFunctionObjArgs(Self(self)->bound, self, object, nullptr);
}

int Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(Self(self)->original);
  Py_VISIT(Self(self)->find);
  Py_VISIT(Self(self)->bound);
  return 0;
}

int Clear(PyObject* self) {
  Py_CLEAR(Self(self)->original);
  Py_CLEAR(Self(self)->find);
  Py_CLEAR(Self(self)->bound);
  return 0;
}

void Dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Clear(self);
  Py_XDECREF(Self(self)->attribute);
  PyObject_GC_Del(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(SubscriptObject, vectorcall), READONLY, nullptr},
    {"__wrapped__", T_OBJECT, offsetof(SubscriptObject, original), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(New)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(Clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(Bind)},
    {Py_tp_members, members},
    {0, nullptr},
};

// As a method descriptor it is called with the kernel, and no bound method is made.
PyType_Spec spec = {"culaunch._core.TritonSubscript", sizeof(SubscriptObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_METHOD_DESCRIPTOR,
                    slots};

}  // namespace

int AddSubscriptType(PyObject* module) { return AddType(module, &spec) != nullptr ? 0 : -1; }

}  // namespace triton
