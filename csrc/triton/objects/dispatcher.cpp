#include "triton/objects/dispatcher.h"

#include <algorithm>

#include "launch/configuration.h"
#include "python/free_threaded_lock.h"
#include "python/recording.h"
#include "python/type_builder.h"
#include "triton/grids/grid.h"
#include "triton/objects/call.h"
#include "triton/objects/dispatcher_methods.h"
#include "triton/objects/launcher.h"
#include "triton/quick/form.h"

namespace triton {

namespace {

// TritonDispatcher(((name, default, flags, annotation), ...), ((parameter, kind[, index]), ...) or
// None): the second lists the values that the choices of the decorators above the kernel depend on.
// Further arguments belong to a subclass.
PyObject* NewDispatcher(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* parameters = nullptr;
  PyObject* key = nullptr;
  if (!PyArg_ParseTuple(args, "O!O:TritonDispatcher", &PyTuple_Type, &parameters, &key)) {
    return nullptr;
  }
  auto state = std::make_unique<State>();
  if (PyErr_Occurred() != nullptr) return nullptr;  // no memory for its guards
  state->count = static_cast<size_t>(PyTuple_Size(parameters));
  state->parameters = std::make_unique<Parameter[]>(state->count);
  for (size_t i = 0; i < state->count; ++i) {
    if (!ReadParameter(PyTuple_GetItem(parameters, static_cast<Py_ssize_t>(i)),
                       &state->parameters[i])) {
      return nullptr;
    }
    (state->parameters[i].is_constexpr ? state->constants : state->runtime).push_back(i);
    if (state->parameters[i].is_set_to_zero) state->zeroes.push_back(i);
  }
  state->sets_to_zero = !state->zeroes.empty();
  if (key != Py_None) {
    state->is_tuned = true;
    const Ref items(PySequence_Tuple(key));
    if (!items) return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_Size(items.get()); ++i) {
      Py_ssize_t index = 0;
      int kind = 0;
      int dimension = 0;
      PyObject* item = PyTuple_GetItem(items.get(), i);
      if (!PyArg_ParseTuple(item, "ni|i", &index, &kind, &dimension)) return nullptr;
      if (index < 0 || static_cast<size_t>(index) >= state->count || kind < 0 ||
          kind > static_cast<int>(KeyKind::kCount)) {
        PyErr_SetString(PyExc_ValueError, "the tuning key names no parameter");
        return nullptr;
      }
      const auto how = static_cast<KeyKind>(kind);
      state->tuning_key.push_back({static_cast<size_t>(index), how, dimension});
      if (state->tuning_key.back().IsOfShape()) {
        state->shape_key.push_back(state->tuning_key.back());
      }
    }
    std::stable_sort(state->shape_key.begin(), state->shape_key.end(),
                     [](const KeyPart& a, const KeyPart& b) { return a.parameter < b.parameter; });
  }
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  state->self = self;
  DispatcherOf(self)->state = state.release();
  return self;
}

int TraverseDispatcher(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (DispatcherOf(self)->state == nullptr) return 0;
  State& state = StateOf(self);
  for (size_t i = 0; i < state.count; ++i) {
    Py_VISIT(state.parameters[i].default_value.get());
    Py_VISIT(state.parameters[i].last_constant.get());
  }
  for (const GridLauncher& one : DispatcherOf(self)->cached) {
    Py_VISIT(one.grid);
    Py_VISIT(one.launcher);
  }
  Py_VISIT(state.interner.numbers());
  Py_VISIT(state.interner.objects());
  for (const Ref& one : state.types) Py_VISIT(one.get());
  int failed = state.guards.Traverse(visit, arg);
  const unsigned traversal = ++state.traversal;
  const auto visit_choice = [&](const std::shared_ptr<const TunedChoice>& choice) {
    if (failed == 0 && choice != nullptr) failed = choice->Traverse(visit, arg, traversal);
  };
  const auto visit_form = [&](const Form* form) {
    if (failed == 0 && form != nullptr) failed = form->Traverse(visit, arg, traversal);
  };
  std::for_each(state.forms, state.forms + State::kForms, visit_form);
  std::for_each(state.retired.begin(), state.retired.end(), visit_form);
  state.variants.ForEach([&](PyObject* variant) {
    if (failed == 0 && variant != nullptr) failed = visit(variant, arg);
  });
  state.choices.ForEach(visit_choice);
  if (failed == 0) failed = state.grids.Traverse(visit, arg);
  visit_choice(state.last_choice);
  return failed;
}

void ClearLaunchers(DispatcherObject* self) {
  for (GridLauncher& one : self->cached) {
    Py_CLEAR(one.launcher);
    Py_CLEAR(one.grid);
  }
}

int ClearDispatcher(PyObject* self) {
  if (DispatcherOf(self)->state == nullptr) return 0;
  ClearLaunchers(DispatcherOf(self));
  ClearVariants(StateOf(self));
  StateOf(self).guards.Clear();
  return 0;
}

void DeallocDispatcher(PyObject* self) {
  DeallocCollected(self, [self] {
    ++g_served_changes;
    if (DispatcherOf(self)->state != nullptr) {
      ClearDispatcher(self);
      for (Form* form : StateOf(self).retired) delete form;
      delete DispatcherOf(self)->state;
    }
    if (DispatcherOf(self)->count.obj != nullptr) PyBuffer_Release(&DispatcherOf(self)->count);
  });
}

PyObject* Subscript(PyObject* object, PyObject* grid) {
  return LauncherFor(DispatcherOf(object), grid);
}

}  // namespace

PyTypeObject* g_dispatcher_type = nullptr;
uint64_t g_served_changes = 1;

// A recent grid is found by identity, or by its numbers.
PyObject* LauncherFor(DispatcherObject* self, PyObject* grid) {
  if (CULAUNCH_UNLIKELY(IsRecording())) {
    Ref recorded;
    if (RecordCall(reinterpret_cast<PyObject*>(self), "getitem", &grid, 1, nullptr, &recorded)) {
      return recorded.release();
    }
  }
  const FreeThreadedLock lock(self->state->mutex);
  for (const GridLauncher& one : self->cached) {
    if (one.grid == grid) return Ref::Borrow(one.launcher).release();
  }
  uint32_t numbers[3];
  if (PyTuple_CheckExact(grid) && QuickDims(grid, numbers)) {
    for (const GridLauncher& one : self->cached) {
      uint32_t known[3];
      // Hooks see the tuple, and (4,) differs from (4, 1) there.
      if (one.grid != nullptr && PyTuple_Size(one.grid) == PyTuple_Size(grid) &&
          QuickDims(one.grid, known) && std::equal(numbers, numbers + 3, known)) {
        return Ref::Borrow(one.launcher).release();
      }
    }
  }
  Ref launcher(MakeLauncher(reinterpret_cast<PyObject*>(self), grid));
  // Objects that may change are read each time. Grid functions are usually new in each call.
  if (launcher && PyTuple_CheckExact(grid)) {
    GridLauncher& slot = self->cached[self->next];
    self->next = (self->next + 1) % DispatcherObject::kCached;
    const GridLauncher old = slot;
    slot = {Ref::Borrow(grid).release(), Ref::Borrow(launcher.get()).release()};
    Py_XDECREF(old.grid);
    Py_XDECREF(old.launcher);
  }
  return launcher.release();
}

int AddDispatcherType(PyObject* module) {
  TypeBuilder builder("culaunch._core.TritonDispatcher", sizeof(DispatcherObject),
                      Py_TPFLAGS_BASETYPE);
  builder.Slot(Py_tp_new, NewDispatcher)
      .Slot(Py_tp_dealloc, DeallocDispatcher)
      .Slot(Py_mp_subscript, Subscript)
      .Collected(TraverseDispatcher, ClearDispatcher);
  AddDispatcherMethods(&builder);
  g_dispatcher_type = builder.AddTo(module);
  return g_dispatcher_type != nullptr ? 0 : -1;
}

}  // namespace triton
