#include "xla/handler.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "driver/errors.h"
#include "xla/invocation.h"
#include "xla/xla_errors.h"

namespace xla_calls {

namespace {

std::atomic<int> g_minor{kMinor};

// XLA asks what a handler is before it calls it.
const MetadataExtension* FindMetadata(const CallFrame* frame) {
  for (const Extension* one = frame->extensions; one != nullptr; one = one->next) {
    if (one->type == kMetadataExtension) return reinterpret_cast<const MetadataExtension*>(one);
  }
  return nullptr;
}

Error* Handle(const CallFrame* frame, bool is_host) {
  if (const MetadataExtension* asked = FindMetadata(frame)) {
    Metadata& metadata = *asked->metadata;
    metadata.version.major = kMajor;
    metadata.version.minor = g_minor.load(std::memory_order_relaxed);
    metadata.traits = 0;  // what a call allocates is not there when a graph of it runs again
    return nullptr;
  }
  if (frame->stage != kExecute) return nullptr;
  if (Py_IsInitialized() == 0) {
    return MakeError(*frame->api, "Python has ended: no function of culaunch can be called",
                     kInternal);
  }
  const HoldGil held;  // XLA calls without the interpreter, on threads of its own, too
  const bool is_done = Guarded<bool>(nullptr, false, [&] {
    Invocation invocation(*frame, is_host);
    return invocation.Run();
  });
  return is_done ? nullptr : TakePythonError(*frame->api);
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
