#include "xla/handler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "driver/errors.h"
#include "xla/invocation.h"
#include "xla/xla_errors.h"

namespace xla_calls {

namespace {

std::atomic<int> g_minor{kMinor};
std::atomic<int> g_running{0};
std::atomic<bool> g_is_ending{false};

// A call increments the counter before it checks for the end. Either the waiting thread sees the
// call, or the call sees the end.
struct Counted {
  Counted() { g_running.fetch_add(1); }
  ~Counted() { g_running.fetch_sub(1); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

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
    metadata.traits = 0;  // memory that a call allocates is freed before a graph of it runs again
    return nullptr;
  }
  if (frame->stage != kExecute) return nullptr;
  const Counted counted;
  if (g_is_ending.load() || Py_IsInitialized() == 0) {
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

PyObject* EndCalls(PyObject*, PyObject*) {
  g_is_ending.store(true);
  while (g_running.load() != 0) {
    {
      const ReleaseGil released;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (PyErr_CheckSignals() < 0) return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* Handler(PyObject*, PyObject* args) {
  const char* platform;
  int minor;
  if (!PyArg_ParseTuple(args, "si:xla_handler", &platform, &minor)) return nullptr;
  g_minor.store(std::min(minor, kMinor), std::memory_order_relaxed);
  auto* handler = std::strcmp(platform, "cpu") == 0 ? HandleHost : HandleCuda;
  return PyCapsule_New(reinterpret_cast<void*>(handler), nullptr, nullptr);
}

}  // namespace xla_calls
