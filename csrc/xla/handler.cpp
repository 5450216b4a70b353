#include "xla/handler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "driver/errors.h"
#include "xla/invocation.h"
#include "xla/xla_errors.h"

namespace xla_calls {

namespace {

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

// XLA asks for a handler's metadata before it calls the handler.
const MetadataExtension* FindMetadata(const CallFrame* frame) {
  for (const Extension* one = frame->extensions; one != nullptr; one = one->next) {
    if (one->type == kMetadataExtension) return reinterpret_cast<const MetadataExtension*>(one);
  }
  return nullptr;
}

Error* Handle(const CallFrame* frame, int minor, bool is_host) {
  if (const MetadataExtension* asked = FindMetadata(frame)) {
    Metadata& metadata = *asked->metadata;
    metadata.version.major = kMajor;
    metadata.version.minor = minor;
    metadata.traits = 0;  // a call's memory is freed before its graph runs again
    return nullptr;
  }
  if (frame->stage != kExecute) return nullptr;
  const Counted counted;
  if (g_is_ending.load() || Py_IsInitialized() == 0) {
    return MakeError(*frame->api, "Python has shut down, so no culaunch function can be called",
                     kInternal);
  }
  const HoldGil held;  // XLA calls this without the GIL, also on threads of its own
  const bool is_done = Guarded<bool>(nullptr, false, [&] {
    Invocation invocation(*frame, is_host);
    return invocation.Run();
  });
  return is_done ? nullptr : TakePythonError(*frame->api);
}

using HandlerFunction = Error* (*)(const CallFrame*);

// XLA passes no user data to a handler, so each version and platform has its own function.
template <int minor, bool is_host>
Error* HandleAs(const CallFrame* frame) {
  return Handle(frame, minor, is_host);
}

template <bool is_host, int... minors>
HandlerFunction FindHandler(int minor, std::integer_sequence<int, minors...>) {
  static constexpr HandlerFunction kHandlers[] = {HandleAs<minors, is_host>...};
  return kHandlers[std::clamp(minor, 0, kMinor)];
}

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
  constexpr std::make_integer_sequence<int, kMinor + 1> kMinors;
  const HandlerFunction handler = std::strcmp(platform, "cpu") == 0
                                      ? FindHandler<true>(minor, kMinors)
                                      : FindHandler<false>(minor, kMinors);
  return PyCapsule_New(reinterpret_cast<void*>(handler), nullptr, nullptr);
}

}  // namespace xla_calls
