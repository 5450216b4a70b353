#include "triton/objects/dispatcher_methods.h"

#include <utility>

#include "driver/driver_object.h"
#include "driver/errors.h"
#include "python/call_arguments.h"
#include "python/recording.h"
#include "triton/dispatchers/dispatcher_object.h"
#include "triton/grids/grid.h"
#include "triton/objects/call.h"
#include "triton/quick/form.h"

namespace triton {

namespace {

// _set_driver(driver, type or None): use this driver from now on. The type is an array type of the
// framework that provides the stream of calls without arrays.
PyObject* SetDriver(PyObject* self, PyObject* args) {
  PyObject* driver = nullptr;
  PyObject* type = nullptr;
  if (!PyArg_ParseTuple(args, "OO:_set_driver", &driver, &type)) return nullptr;
  culaunch::Driver* table = DriverOf(driver);
  if (table == nullptr) return nullptr;
  State& state = StateOf(self);
  const DLPackExchangeAPI* fallback = nullptr;
  if (type != Py_None && PyType_Check(type)) {
    TypeEntry scratch;
    const TypeEntry* entry = LookUpType(reinterpret_cast<PyTypeObject*>(type), &scratch);
    if (entry == nullptr) return nullptr;
    if (entry->kind == ArgumentKind::kExchange) fallback = entry->api;
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    std::vector<int> targets;
    for (int i = 0; i < table->device_count(); ++i) {
      targets.push_back(10 * table->Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, i) +
                        table->Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, i));
    }
    state.targets = std::move(targets);
    state.fallback = fallback;
    const Ref before = std::exchange(state.driver, Ref::Borrow(driver));
    state.table = table;
    state.device_type = table->device_types().front();
    ClearVariants(state);  // last: freeing may run Python, which may call
    Py_RETURN_NONE;
  });
}

// _set_guards(((dict, name, is present, object) or (dict, None, True, names), ...), (list of hooks,
// ...), ((list, size, first item or None), ...), ((cell, object), ...))
PyObject* SetGuards(PyObject* self, PyObject* args) {
  PyObject* guards = nullptr;
  PyObject* hooks = nullptr;
  PyObject* lists = nullptr;
  PyObject* cells = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!O!O!:_set_guards", &PyTuple_Type, &guards, &PyTuple_Type, &hooks,
                        &PyTuple_Type, &lists, &PyTuple_Type, &cells)) {
    return nullptr;
  }
  if (!StateOf(self).guards.Set(guards, hooks, lists, cells)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* CallInMode(PyObject* self, PyObject* args, CallMode mode) {
  PyObject* grid = nullptr;
  PyObject* positional = nullptr;
  PyObject* keywords = nullptr;
  if (!PyArg_ParseTuple(args, "OO!O!", &grid, &PyTuple_Type, &positional, &PyDict_Type,
                        &keywords)) {
    return nullptr;
  }
  if (CULAUNCH_UNLIKELY(IsRecording()) && mode == CallMode::kGuarded) {
    const Ref none(PyDict_New());
    Ref recorded;
    if (!none || Record(self, "run", args, none.get(), &recorded)) return recorded.release();
  }
  FlatArguments flat;
  if (!flat.Take(positional, keywords)) return nullptr;
  uint32_t dims[3];
  const bool is_fixed = PyCallable_Check(grid) == 0;
  if (is_fixed && !ReadGrid(grid, dims)) return nullptr;
  return CallDispatcher(DispatcherOf(self), grid, is_fixed ? dims : nullptr, flat.values.data(),
                        flat.count, flat.names.get(), mode);
}

// _call(grid, args, keywords), _call_plain, _resolve -> (variant, device, stream, arguments, grid)
PyObject* CallGuarded(PyObject* self, PyObject* args) {
  return CallInMode(self, args, CallMode::kGuarded);
}
PyObject* CallPlain(PyObject* self, PyObject* args) {
  return CallInMode(self, args, CallMode::kPlain);
}
PyObject* Resolve(PyObject* self, PyObject* args) {
  return CallInMode(self, args, CallMode::kResolve);
}

// _specialize(args, keywords) -> [(type, key), ...]
PyObject* Specialize(PyObject* self, PyObject* args) {
  PyObject* positional = nullptr;
  PyObject* keywords = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!:_specialize", &PyTuple_Type, &positional, &PyDict_Type,
                        &keywords)) {
    return nullptr;
  }
  FlatArguments flat;
  if (!flat.Take(positional, keywords)) return nullptr;
  return DescribeArguments(DispatcherOf(self), flat.values.data(), flat.count, flat.names.get());
}

// _serve(kernel or None, buffer, is_compiled): calls of the kernel come here directly from now on.
// Each launch increments the uint64 in the buffer. Calls that cannot be launched natively go
// through Triton. A kernel that Triton has compiled takes all arguments by position, and a grid of
// three.
PyObject* Serve(PyObject* self, PyObject* args) {
  PyObject* kernel = nullptr;
  PyObject* count = nullptr;
  int is_compiled = 0;
  if (!PyArg_ParseTuple(args, "OO|p:_serve", &kernel, &count, &is_compiled)) return nullptr;
  Py_buffer view;
  if (PyObject_GetBuffer(count, &view, PyBUF_WRITABLE) < 0) return nullptr;
  if (view.len != sizeof(uint64_t) || reinterpret_cast<uintptr_t>(view.buf) % sizeof(uint64_t)) {
    PyBuffer_Release(&view);
    PyErr_SetString(PyExc_ValueError, "launches are counted in one uint64");
    return nullptr;
  }
  State& state = StateOf(self);
  Py_buffer before = std::exchange(DispatcherOf(self)->count, view);
  state.launches = static_cast<uint64_t*>(view.buf);
  state.falls_back = true;
  state.is_compiled = is_compiled != 0;
  DispatcherOf(self)->served = kernel != Py_None ? kernel : nullptr;
  ++g_served_changes;
  if (before.obj != nullptr) PyBuffer_Release(&before);
  Py_RETURN_NONE;
}

// _tell_choices(checks): _chose is called with each choice that differs from the previous call's.
// If `checks` is true, _compare compares some choices with Python's result.
PyObject* TellChoices(PyObject* self, PyObject* args) {
  int checks = 0;
  if (!PyArg_ParseTuple(args, "p:_tell_choices", &checks)) return nullptr;
  StateOf(self).tells_choices = true;
  StateOf(self).checks = checks != 0 ? 1 : 0;
  Py_RETURN_NONE;
}

// _guards_hold() -> whether nothing guarded has changed. Hooks are ignored.
PyObject* GuardsHold(PyObject* self, PyObject*) {
  return PyBool_FromLong(StateOf(self).guards.AllButHooksHold() ? 1 : 0);
}

// _clear(): forget every variant and tuned configuration.
PyObject* ForgetAll(PyObject* self, PyObject*) {
  ClearVariants(StateOf(self));
  Py_RETURN_NONE;
}

PyObject* GetDriver(PyObject* self, void*) {
  PyObject* driver = StateOf(self).driver.get();
  return Ref::Borrow(driver != nullptr ? driver : Py_None).release();
}
PyObject* GetVariantCount(PyObject* self, void*) {
  return PyLong_FromSize_t(StateOf(self).variants.count());
}
PyObject* GetMisses(PyObject* self, void*) { return PyLong_FromUnsignedLong(StateOf(self).misses); }
PyObject* GetWatched(PyObject* self, void*) {
  return PyBool_FromLong(StateOf(self).guards.is_watched() ? 1 : 0);
}
PyObject* GetParameterNames(PyObject* self, void*) {
  State& state = StateOf(self);
  PyObject* names = PyTuple_New(static_cast<Py_ssize_t>(state.count));
  for (size_t i = 0; names != nullptr && i < state.count; ++i) {
    PyTuple_SetItem(names, static_cast<Py_ssize_t>(i),
                    Ref::Borrow(state.parameters[i].name.get()).release());
  }
  return names;
}

}  // namespace

// Make everything unreachable before freeing anything, because freeing may run Python.
void ClearVariants(State& state) {
  WordTable<PyObject*> variants;
  WordTable<std::shared_ptr<const TunedChoice>> choices;
  std::swap(variants, state.variants);
  std::swap(choices, state.choices);
  const std::shared_ptr<const TunedChoice> last = std::move(state.last_choice);
  state.last_choice = nullptr;
  Form::ForgetAll(state);
  state.grids.Clear();
  variants.ForEach([](PyObject*& variant) { Py_CLEAR(variant); });
}

void AddDispatcherMethods(TypeBuilder* builder) {
  (*builder)
      .Method("_set_driver", SetDriver)
      .Method("_set_guards", SetGuards)
      .Method("_call", CallGuarded)
      .Method("_call_plain", CallPlain)
      .Method("_resolve", Resolve)
      .Method("_specialize", Specialize)
      .Method("_serve", Serve)
      .Method("_tell_choices", TellChoices)
      .Method("_guards_hold", GuardsHold, METH_NOARGS)
      .Method("_clear", ForgetAll, METH_NOARGS)
      .Property("_driver", GetDriver)
      .Property("_key_count", GetVariantCount)
      .Property("_misses", GetMisses)
      .Property("_is_watched", GetWatched)
      .Property("_parameter_names", GetParameterNames);
}

}  // namespace triton
