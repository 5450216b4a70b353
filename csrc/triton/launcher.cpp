#include "triton/launcher.h"

#include <algorithm>
#include <cstddef>

#include "python/recording.h"
#include "python/type_builder.h"
#include "triton/call.h"
#include "triton/grid.h"

namespace triton {

namespace {

PyTypeObject* g_launcher_type = nullptr;

struct LauncherObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dispatcher;  // owned
  PyObject* grid;        // owned
  bool is_fixed;
  uint32_t dims[3];
};

LauncherObject* Self(PyObject* self) { return reinterpret_cast<LauncherObject*>(self); }

PyObject* CallLauncher(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keyword_names) {
  if (CULAUNCH_UNLIKELY(IsRecording())) {
    Ref recorded;
    if (RecordCall(callable, "call", args, ArgumentCount(nargsf), keyword_names, &recorded)) {
      return recorded.release();
    }
  }
  LauncherObject* self = Self(callable);
  return CallDispatcher(reinterpret_cast<DispatcherObject*>(self->dispatcher), self->grid,
                        self->is_fixed ? self->dims : nullptr, args, ArgumentCount(nargsf),
                        keyword_names, CallMode::kGuarded);
}

int Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(Self(self)->dispatcher);
  Py_VISIT(Self(self)->grid);
  return 0;
}

// The dispatcher's own clear breaks the cycle with its cache.
int Clear(PyObject*) { return 0; }

void Dealloc(PyObject* self) {
  DeallocCollected(self, [self] {
    Py_XDECREF(Self(self)->dispatcher);
    Py_XDECREF(Self(self)->grid);
  });
}

}  // namespace

PyObject* MakeLauncher(PyObject* dispatcher, PyObject* grid) {
  uint32_t dims[3] = {0, 0, 0};
  const bool is_fixed = PyCallable_Check(grid) == 0;
  if (is_fixed && !ReadGrid(grid, dims)) return nullptr;
  PyObject* object = PyType_GenericAlloc(g_launcher_type, 0);
  if (object == nullptr) return nullptr;
  LauncherObject* self = Self(object);
  self->vectorcall = CallLauncher;
  self->dispatcher = Ref::Borrow(dispatcher).release();
  self->grid = Ref::Borrow(grid).release();
  self->is_fixed = is_fixed;
  std::copy(dims, dims + 3, self->dims);
  return object;
}

int AddLauncherType(PyObject* module) {
  g_launcher_type = TypeBuilder("culaunch._core.TritonLauncher", sizeof(LauncherObject),
                                Py_TPFLAGS_DISALLOW_INSTANTIATION)
                        .Slot(Py_tp_dealloc, Dealloc)
                        .Collected(Traverse, Clear)
                        .Callable(offsetof(LauncherObject, vectorcall))
                        .Member("grid", offsetof(LauncherObject, grid))
                        .Member("_dispatcher", offsetof(LauncherObject, dispatcher))
                        .AddTo(module);
  return g_launcher_type != nullptr ? 0 : -1;
}

}  // namespace triton
