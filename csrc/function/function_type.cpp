#include "function/function_type.h"

#include <cstddef>
#include <utility>

#include "driver/errors.h"
#include "function/calls/call.h"
#include "function/kinds/bind.h"
#include "function/kinds/state.h"
#include "function/run.h"
#include "python/call_keeper.h"
#include "python/recording.h"
#include "python/type_builder.h"
#include "python/upcalls.h"

namespace function {

namespace {

PyTypeObject* g_function_type = nullptr;

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  State* state;  // owned
};

FunctionObject* FunctionOf(PyObject* self) { return reinterpret_cast<FunctionObject*>(self); }

CULAUNCH_APART PyObject* CallBound(State& state, PyObject* const* args, size_t count,
                                   PyObject* keyword_names) {
  SmallBuffer<PyObject*, 24> bound(state.parameters.size());
  if (!Bind(state, args, count, keyword_names, bound.data())) return nullptr;
  return RunFunction(state, bound.data());
}

PyObject* CallFunction(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keyword_names) {
  State& state = *FunctionOf(callable)->state;
  const size_t count = ArgumentCount(nargsf);
  if (CULAUNCH_UNLIKELY(IsRecording())) {
    Ref recorded;
    if (RecordCall(callable, "call", args, count, keyword_names, &recorded)) {
      return recorded.release();
    }
  }
  const KeptCall kept(callable, args, count, keyword_names);
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    const bool is_plain = count == state.parameters.size() && count == state.positional;
    if (CULAUNCH_UNLIKELY(!is_plain || keyword_names != nullptr)) {
      return CallBound(state, args, count, keyword_names);
    }
    return RunFunction(state, args);
  });
}

// Stands for a missing default.
PyObject* g_missing = nullptr;

bool ReadParameters(State* state, PyObject* parameters, PyObject* defaults) {
  const Py_ssize_t count = PyTuple_Size(parameters);
  if (count > static_cast<Py_ssize_t>(Program::kMostParameters) ||
      PyTuple_Size(defaults) != count) {
    PyErr_Format(PyExc_ValueError,
                 "a function has at most %zu parameters, and as many defaults (got %zd and %zd)",
                 Program::kMostParameters, count, PyTuple_Size(defaults));
    return false;
  }
  constexpr int kKeywordOnly = 2;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* name = nullptr;
    int kind = 0;
    PyObject* entry = PyTuple_GetItem(parameters, i);
    if (!PyTuple_Check(entry) || PyArg_ParseTuple(entry, "Ui", &name, &kind) == 0 || kind < 0 ||
        kind > kKeywordOnly ||
        (kind != kKeywordOnly && static_cast<Py_ssize_t>(state->positional) != i)) {
      PyErr_Clear();
      PyErr_SetString(PyExc_ValueError,
                      "a parameter is (name, kind), with the kinds 0 positional only, 1 either, 2 "
                      "keyword only, in this order");
      return false;
    }
    PyObject* value = PyTuple_GetItem(defaults, i);
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    state->parameters.push_back({Ref(name), kind, value != g_missing ? Ref::Borrow(value) : Ref()});
    if (kind != kKeywordOnly) ++state->positional;
  }
  return true;
}

// Function(name, parameters, defaults, /). Subclasses add everything else.
PyObject* NewFunction(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *name, *parameters, *defaults;
  if (!PyArg_ParseTuple(args, "UO!O!:Function", &name, &PyTuple_Type, &parameters, &PyTuple_Type,
                        &defaults)) {
    return nullptr;
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    auto state = std::make_unique<State>();
    state->name = Ref::Borrow(name);
    if (!ReadParameters(state.get(), parameters, defaults)) return nullptr;
    PyObject* object = PyType_GenericAlloc(type, 0);
    if (object == nullptr) return nullptr;
    state->self = object;
    FunctionOf(object)->vectorcall = CallFunction;
    FunctionOf(object)->state = state.release();
    return object;
  });
}

int TraverseFunction(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  const State* state = FunctionOf(object)->state;
  if (state == nullptr) return 0;
  for (const Parameter& parameter : state->parameters) Py_VISIT(parameter.default_value.get());
  for (const Kind* it = state->kinds.load(); it != nullptr; it = it->next) {
    const int result = it->Traverse(visit, arg);
    if (result != 0) return result;
  }
  for (const std::unique_ptr<Watch>& watch : state->all_watches) {
    const int result = watch->Traverse(visit, arg);
    if (result != 0) return result;
  }
  return 0;
}

// A call may arrive until the object is freed, so its inputs stay until then. Only the programs'
// constants and the watched objects can close a cycle.
int ClearFunction(PyObject* object) {
  State* state = FunctionOf(object)->state;
  if (state == nullptr) return 0;
  state->Forget();
  for (const std::unique_ptr<Watch>& watch : state->all_watches) watch->Clear();
  return 0;
}

void DeallocFunction(PyObject* object) {
  DeallocCollected(object, [object] { delete FunctionOf(object)->state; });
}

// _add(kind, program, reads): install or replace the program of a kind.
PyObject* Add(PyObject* self, PyObject* args) {
  PyObject *description, *program, *reads;
  if (!PyArg_ParseTuple(args, "O!O!O!:_add", &PyTuple_Type, &description, g_program_type, &program,
                        &PyTuple_Type, &reads)) {
    return nullptr;
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    State& state = *FunctionOf(self)->state;
    if (static_cast<size_t>(PyTuple_Size(description)) != state.parameters.size()) {
      PyErr_Format(PyExc_ValueError,
                   "the kind of %U must have one entry per parameter, %zu in all (got %zd)",
                   state.name.get(), state.parameters.size(), PyTuple_Size(description));
      return nullptr;
    }
    std::unique_ptr<Kind> kind = Kind::FromDescription(description);
    if (kind == nullptr ||
        !state.Add(std::move(kind), reinterpret_cast<ProgramObject*>(program), reads)) {
      return nullptr;
    }
    Py_RETURN_NONE;
  });
}

// _kind(arguments): the kind of a call with these arguments, one for each parameter.
PyObject* KindOf(PyObject* self, PyObject* args) {
  PyObject* arguments;
  if (!PyArg_ParseTuple(args, "O!:_kind", &PyTuple_Type, &arguments)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    State& state = *FunctionOf(self)->state;
    const auto count = static_cast<size_t>(PyTuple_Size(arguments));
    if (count != state.parameters.size()) {
      PyErr_Format(PyExc_ValueError, "%U needs one argument per parameter, %zu in all (got %zu)",
                   state.name.get(), state.parameters.size(), count);
      return nullptr;
    }
    std::vector<PyObject*> items;
    for (size_t i = 0; i < count; ++i) {
      items.push_back(PyTuple_GetItem(arguments, static_cast<Py_ssize_t>(i)));
    }
    FunctionCall call(state, items.data());
    return call.DescribeKind().release();
  });
}

// _bind(args, keywords): the arguments, one for each parameter.
PyObject* BindArguments(PyObject* self, PyObject* args) {
  PyObject *positional, *keywords;
  if (!PyArg_ParseTuple(args, "O!O!:_bind", &PyTuple_Type, &positional, &PyDict_Type, &keywords)) {
    return nullptr;
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    State& state = *FunctionOf(self)->state;
    std::vector<PyObject*> items;
    for (Py_ssize_t i = 0; i < PyTuple_Size(positional); ++i) {
      items.push_back(PyTuple_GetItem(positional, i));
    }
    const size_t count = items.size();
    const Ref names(PyList_New(0));
    Py_ssize_t at = 0;
    PyObject *name, *value;
    while (names && PyDict_Next(keywords, &at, &name, &value) != 0) {
      if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "keywords must be strings");
        return nullptr;
      }
      if (PyList_Append(names.get(), name) < 0) return nullptr;
      items.push_back(value);
    }
    const Ref keyword_names(names ? PyList_AsTuple(names.get()) : nullptr);
    if (!keyword_names) return nullptr;
    std::vector<PyObject*> bound(state.parameters.size() + 1);
    if (!Bind(state, items.data(), count, keyword_names.get(), bound.data())) return nullptr;
    Ref result(PyTuple_New(static_cast<Py_ssize_t>(state.parameters.size())));
    for (size_t i = 0; result && i < state.parameters.size(); ++i) {
      PyTuple_SetItem(result.get(), static_cast<Py_ssize_t>(i), Ref::Borrow(bound[i]).release());
    }
    return result.release();
  });
}

// _programs(): ((kind, program), ...), the most recent kinds last.
PyObject* Programs(PyObject* self, PyObject*) {
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    State& state = *FunctionOf(self)->state;
    const Ref list(PyList_New(0));
    for (Kind* it = state.kinds.load(); list && it != nullptr; it = it->next) {
      const Ref program = state.ProgramOf(*it);
      if (!program) continue;
      const Ref description = it->Describe();
      const Ref pair(description ? PyTuple_New(2) : nullptr);
      if (!pair) return nullptr;
      PyTuple_SetItem(pair.get(), 0, Ref::Borrow(description.get()).release());
      PyTuple_SetItem(pair.get(), 1, Ref::Borrow(program.get()).release());
      if (PyList_Append(list.get(), pair.get()) < 0) return nullptr;
    }
    return list ? PyList_AsTuple(list.get()) : nullptr;
  });
}

// _clear(): drop all programs, and stop watching.
PyObject* ClearPrograms(PyObject* self, PyObject*) {
  FunctionOf(self)->state->Forget();
  Py_RETURN_NONE;
}

}  // namespace

int AddFunctionType(PyObject* module) {
  g_function_type =
      TypeBuilder("culaunch._core.Function", sizeof(FunctionObject), Py_TPFLAGS_BASETYPE)
          .Slot(Py_tp_new, NewFunction)
          .Slot(Py_tp_dealloc, DeallocFunction)
          .Collected(TraverseFunction, ClearFunction)
          .Callable(offsetof(FunctionObject, vectorcall))
          .Method("_add", Add)
          .Method("_kind", KindOf)
          .Method("_bind", BindArguments)
          .Method("_programs", Programs, METH_NOARGS)
          .Method("_clear", ClearPrograms, METH_NOARGS)
          .AddTo(module);
  if (g_function_type == nullptr) return -1;
  g_missing = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return g_missing != nullptr &&
                 PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_function_type), "missing",
                                        g_missing) == 0
             ? 0
             : -1;
}

}  // namespace function
