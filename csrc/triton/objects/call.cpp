#include "triton/objects/call.h"

#include "python/call_arguments.h"
#include "python/call_keeper.h"
#include "python/upcalls.h"
#include "triton/grids/fallback.h"
#include "triton/quick/form.h"

namespace triton {

namespace {

CULAUNCH_RARE bool Prepare(DispatcherObject* self) {
  const Ref none(
      PyObject_CallMethod(reinterpret_cast<PyObject*>(self), methods::kPrepare, nullptr));
  if (none && self->state->table == nullptr) {
    PyErr_SetString(PyExc_SystemError, "_prepare chose no driver");
  }
  return self->state->table != nullptr;
}

CULAUNCH_APART PyObject* CallGenerally(DispatcherObject* self, PyObject* grid, const uint32_t* dims,
                                       PyObject* const* args, size_t count, PyObject* keyword_names,
                                       CallMode mode) {
  try {
    return GeneralCall(self, grid, dims, args, count, keyword_names, mode).Run();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

// To find defects of culaunch, about half of the choices are compared with Python's.
CULAUNCH_RARE PyObject* Compared(DispatcherObject* self, PyObject* const* args, size_t count,
                                 PyObject* keyword_names, PyObject* result) {
  Ref kept(result);
  State& state = *self->state;
  const std::shared_ptr<const TunedChoice> choice = state.last_choice;
  state.checks = state.checks * 1664525u + 1013904223u;
  // If a guard no longer holds, Python has just handled the call.
  const bool is_compared = choice != nullptr && state.checks >> 31 == 0 && state.guards.Hold();
  if (!is_compared) return kept.release();
  const Ref positional = PositionalTuple(args, count);
  const Ref keywords = KeywordDict(args, count, keyword_names);
  const Ref chosen = choice->Settings(state.parameters.get());
  if (!positional || !keywords || !chosen) return nullptr;
  const Ref none(PyObject_CallMethod(reinterpret_cast<PyObject*>(self), methods::kCompare, "OOO",
                                     positional.get(), keywords.get(), chosen.get()));
  return none ? kept.release() : nullptr;
}

// A call failed, with a Python error set. If the error is a fallback, Triton takes over the call.
CULAUNCH_RARE PyObject* FallBack(DispatcherObject* self, PyObject* grid, PyObject* const* args,
                                 size_t count, PyObject* keyword_names) {
  if (!self->state->falls_back || PyErr_ExceptionMatches(g_triton_fallback) == 0) return nullptr;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  const Ref reason(value);
  const Ref positional = PositionalTuple(args, count);
  const Ref keywords = KeywordDict(args, count, keyword_names);
  if (!positional || !keywords) return nullptr;
  return PyObject_CallMethod(reinterpret_cast<PyObject*>(self), methods::kFallBack, "OOOO", grid,
                             positional.get(), keywords.get(), reason.get());
}

// The quick path calls a grid function before it looks at the arguments. If the function raised, an
// error about the arguments comes first.
CULAUNCH_RARE void PreferArgumentError(DispatcherObject* self, PyObject* const* args, size_t count,
                                       PyObject* keyword_names) {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Ref described(DescribeArguments(self, args, count, keyword_names));
  if (described) {
    PyErr_Restore(type, value, traceback);
    return;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

// Tell a profile the arguments of a call that launched.
inline void NoteLaunch(PyObject* const* args, size_t count, PyObject* keyword_names) {
  if (!CULAUNCH_UNLIKELY(CallKeeper::AreNoted())) return;
  const Py_ssize_t named = keyword_names != nullptr ? PyTuple_Size(keyword_names) : 0;
  CallKeeper::NoteTriton(args, count + static_cast<size_t>(named));
}

}  // namespace

PyObject* CallDispatcher(DispatcherObject* self, PyObject* grid, const uint32_t* dims,
                         PyObject* const* args, size_t count, PyObject* keyword_names,
                         CallMode mode) {
  State& state = *self->state;
  PyObject* result;
  uint32_t asked[3];
  if (!CULAUNCH_UNLIKELY(mode != CallMode::kGuarded || state.forms[0] == nullptr ||
                         !state.guards.Hold())) {
    const bool is_done =
        !CULAUNCH_UNLIKELY(dims == nullptr)
            ? Form::Call(state, dims, args, count, keyword_names, &result)
            : Form::CallAsking(state, grid, asked, &dims, args, count, keyword_names, &result);
    if (!CULAUNCH_UNLIKELY(!is_done)) {
      if (CULAUNCH_UNLIKELY(result == nullptr)) {
        if (PyCallable_Check(grid) != 0 && !state.is_tuned) {
          PreferArgumentError(self, args, count, keyword_names);
        }
        return FallBack(self, grid, args, count, keyword_names);
      }
      NoteLaunch(args, count, keyword_names);
      if (CULAUNCH_UNLIKELY(state.checks != 0)) {
        return Compared(self, args, count, keyword_names, result);
      }
      return result;
    }
  }
  if (state.table == nullptr && !Prepare(self)) return nullptr;
  result = CallGenerally(self, grid, dims, args, count, keyword_names, mode);
  if (CULAUNCH_UNLIKELY(result == nullptr)) {
    return FallBack(self, grid, args, count, keyword_names);
  }
  NoteLaunch(args, count, keyword_names);
  return state.checks != 0 ? Compared(self, args, count, keyword_names, result) : result;
}

PyObject* DescribeArguments(DispatcherObject* self, PyObject* const* args, size_t count,
                            PyObject* keyword_names) {
  if (self->state->table == nullptr && !Prepare(self)) return nullptr;
  return GeneralCall(self, Py_None, nullptr, args, count, keyword_names, CallMode::kPlain)
      .Description();
}

}  // namespace triton
