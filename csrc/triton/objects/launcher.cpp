#include "triton/objects/launcher.h"

#include <algorithm>
#include <cstddef>

#include "python/call_arguments.h"
#include "python/recording.h"
#include "python/type_builder.h"
#include "triton/grids/grid.h"
#include "triton/objects/call.h"
#include "triton/quick/form.h"

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

LauncherObject* LauncherOf(PyObject* self) { return reinterpret_cast<LauncherObject*>(self); }
State& StateOf(LauncherObject* self) {
  return *reinterpret_cast<DispatcherObject*>(self->dispatcher)->state;
}

PyObject* CallLauncher(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keyword_names) {
  if (CULAUNCH_UNLIKELY(IsRecording())) {
    Ref recorded;
    if (RecordCall(callable, "call", args, ArgumentCount(nargsf), keyword_names, &recorded)) {
      return recorded.release();
    }
  }
  LauncherObject* self = LauncherOf(callable);
  // Set this before the call, because the call may free the launcher.
  if (CULAUNCH_UNLIKELY(StateOf(self).style.has_dicts())) self->vectorcall = nullptr;
  return CallDispatcher(reinterpret_cast<DispatcherObject*>(self->dispatcher), self->grid,
                        self->is_fixed ? self->dims : nullptr, args, ArgumentCount(nargsf),
                        keyword_names, CallMode::kGuarded);
}

// CPython calls this if there is no vectorcall. CALL_FUNCTION_EX passes the dict that it already
// has, and any other call a new dict.
PyObject* CallWithDict(PyObject* callable, PyObject* args, PyObject* keywords) {
  LauncherObject* self = LauncherOf(callable);
  State& state = StateOf(self);
  state.style.NoteDict();
  if (!state.style.has_dicts()) self->vectorcall = CallLauncher;
  PyObject* arranged[Form::kMost];
  // The caller holds the tuple and the dict; a dict that other code also holds may change.
  const bool is_kept = keywords != nullptr && Py_REFCNT(keywords) == 1;
  if (is_kept && !IsRecording() && Form::Arrange(state, args, keywords, arranged)) {
    const Ref names = Ref::Borrow(Form::LastNames(state));
    return CallDispatcher(reinterpret_cast<DispatcherObject*>(self->dispatcher), self->grid,
                          self->is_fixed ? self->dims : nullptr, arranged,
                          static_cast<size_t>(PyTuple_Size(args)), names.get(), CallMode::kGuarded);
  }
  FlatArguments flat;
  if (!flat.Take(args, keywords)) return nullptr;
  return CallLauncher(callable, flat.values.data(), flat.count, flat.names.get());
}

int TraverseLauncher(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(LauncherOf(self)->dispatcher);
  Py_VISIT(LauncherOf(self)->grid);
  return 0;
}

// The dispatcher's own clear breaks the cycle with its cache.
int ClearLauncher(PyObject*) { return 0; }

void DeallocLauncher(PyObject* self) {
  DeallocCollected(self, [self] {
    Py_XDECREF(LauncherOf(self)->dispatcher);
    Py_XDECREF(LauncherOf(self)->grid);
  });
}

}  // namespace

PyObject* MakeLauncher(PyObject* dispatcher, PyObject* grid) {
  uint32_t dims[3] = {0, 0, 0};
  const bool is_fixed = PyCallable_Check(grid) == 0;
  const State& state = *reinterpret_cast<DispatcherObject*>(dispatcher)->state;
  if (is_fixed && !ReadTritonsGrid(grid, state.falls_back, dims)) return nullptr;
  PyObject* object = PyType_GenericAlloc(g_launcher_type, 0);
  if (object == nullptr) return nullptr;
  LauncherObject* self = LauncherOf(object);
  self->dispatcher = Ref::Borrow(dispatcher).release();
  self->vectorcall = StateOf(self).style.has_dicts() ? nullptr : CallLauncher;
  self->grid = Ref::Borrow(grid).release();
  self->is_fixed = is_fixed;
  std::copy(dims, dims + 3, self->dims);
  return object;
}

int AddLauncherType(PyObject* module) {
  g_launcher_type = TypeBuilder("culaunch._core.TritonLauncher", sizeof(LauncherObject),
                                Py_TPFLAGS_DISALLOW_INSTANTIATION)
                        .Slot(Py_tp_dealloc, DeallocLauncher)
                        .Collected(TraverseLauncher, ClearLauncher)
                        .Callable(offsetof(LauncherObject, vectorcall), CallWithDict)
                        .Member("grid", offsetof(LauncherObject, grid))
                        .Member("_dispatcher", offsetof(LauncherObject, dispatcher))
                        .AddTo(module);
  return g_launcher_type != nullptr ? 0 : -1;
}

}  // namespace triton
