#include "xla/handler.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "driver/errors.h"
#include "xla/invocation.h"

namespace xla_calls {

namespace {

std::atomic<int> g_minor{kMinor};

Error* MakeError(const Api* api, const char* message, int code) {
  ErrorArguments arguments = {sizeof(ErrorArguments), nullptr, message, code};
  return api->create_error(&arguments);
}

// The Python error, as XLA's.
Error* TakeError(const Api* api) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref held_type(type), held_value(value), held_trace(trace);
  const Ref name(type != nullptr ? PyObject_GetAttrString(type, "__name__") : nullptr);
  const Ref text(name ? PyUnicode_FromFormat("%U: %S", name.get(), value) : nullptr);
  const char* message = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  const bool is_mistake = PyErr_GivenExceptionMatches(type, PyExc_TypeError) != 0 ||
                          PyErr_GivenExceptionMatches(type, PyExc_ValueError) != 0;
  PyErr_Clear();
  return MakeError(api, message != nullptr ? message : "the function failed",
                   is_mistake ? kInvalidArgument : kInternal);
}

Error* Handle(const CallFrame* frame, bool is_host) {
  if (frame->extensions != nullptr && frame->extensions->type == kMetadataExtension) {
    Metadata& metadata = *reinterpret_cast<MetadataExtension*>(frame->extensions)->metadata;
    metadata.version.major = kMajor;
    metadata.version.minor = g_minor.load(std::memory_order_relaxed);
    metadata.traits = 0;  // what a call allocates is not there when a graph of it runs again
    return nullptr;
  }
  if (frame->stage != kExecute) return nullptr;
  if (Py_IsInitialized() == 0) {
    return MakeError(frame->api, "Python has ended: no function of culaunch can be called",
                     kInternal);
  }
  const HoldGil held;  // XLA calls without the interpreter, on threads of its own, too
  const bool is_done = Guarded<bool>(nullptr, false, [&] {
    Invocation invocation(*frame, is_host);
    return invocation.Run();
  });
  return is_done ? nullptr : TakeError(frame->api);
}

Error* HandleHost(const CallFrame* frame) { return Handle(frame, true); }
Error* HandleCuda(const CallFrame* frame) { return Handle(frame, false); }

}  // namespace

PyObject* Handler(PyObject*, PyObject* args) {
  const char* platform;
  int minor;
  if (!PyArg_ParseTuple(args, "si:xla_handler", &platform, &minor)) return nullptr;
  g_minor.store(std::min(minor, kMinor), std::memory_order_relaxed);
  auto* handler = std::strcmp(platform, "cpu") == 0 ? HandleHost : HandleCuda;
  return PyCapsule_New(reinterpret_cast<void*>(handler), nullptr, nullptr);
}

}  // namespace xla_calls
