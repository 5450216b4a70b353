#include "function/run.h"

#include "driver/errors.h"
#include "function/calls/call.h"
#include "function/execution/execution.h"
#include "function/quick_call.h"

namespace function {

namespace {

CULAUNCH_APART PyObject* RunGenerally(State& state, PyObject* const* args) {
  constexpr int kMostTraces = 8;
  FunctionCall call(state, args);
  for (int traces = 0; traces <= kMostTraces; ++traces) {
    if (!call.CheckWatch()) return nullptr;
    const FunctionCall::Found found = call.Find();
    if (CULAUNCH_UNLIKELY(found != FunctionCall::Found::kFound)) {
      if (found == FunctionCall::Found::kFailed) return call.Refused();
      continue;
    }
    if (CULAUNCH_UNLIKELY(call.IsSeen())) {
      PyObject* result = call.Seen();
      if (result != Py_NotImplemented) return result;
      Py_DECREF(result);
    }
    if (!call.CheckGradients()) return nullptr;
    Execution execution(call);
    const PlanEnd end = execution.Plan();
    if (CULAUNCH_UNLIKELY(end == PlanEnd::kFailed)) return nullptr;
    if (!CULAUNCH_UNLIKELY(end == PlanEnd::kUnknown)) return execution.Run();
    if (!call.Trace()) return nullptr;
  }
  const Ref type = ErrorClass("InternalError");
  if (type) {
    PyErr_Format(type.get(), "%U: tracing it produced no program that fits this call",
                 state.name.get());
  }
  return nullptr;
}

}  // namespace

PyObject* RunFunction(State& state, PyObject* const* args) {
  PyObject* quick;
  if (!CULAUNCH_UNLIKELY(!CallQuickly(state, args, &quick))) return quick;
  return RunGenerally(state, args);
}

}  // namespace function
