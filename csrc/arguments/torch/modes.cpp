#include "arguments/torch/modes.h"

#include <dlfcn.h>

#include <atomic>

namespace {

constexpr const char* kKeysName = "_ZN3c104impl26raw_local_dispatch_key_setE";

std::atomic<void*> g_c10{nullptr};
std::atomic<uint64_t> g_watching{0};

}  // namespace

// Their address stays the same for the life of the thread.
const TorchKeys* TorchKeysOfThread() {
  static thread_local const TorchKeys* keys = nullptr;
  if (CULAUNCH_UNLIKELY(keys == nullptr)) {
    void* c10 = g_c10.load(std::memory_order_acquire);
    if (c10 != nullptr) keys = static_cast<const TorchKeys*>(dlsym(c10, kKeysName));
  }
  return keys;
}

bool IsTorchWatching() {
  const uint64_t watching = g_watching.load(std::memory_order_relaxed);
  if (watching == 0) return false;
  const TorchKeys* keys = TorchKeysOfThread();
  return keys != nullptr && (keys->included & ~keys->excluded & watching) != 0;
}

PyObject* WatchModes(PyObject*, PyObject* args) {
  const char* path;
  unsigned long long keys;
  if (!PyArg_ParseTuple(args, "sK:watch_modes", &path, &keys)) return nullptr;
  void* c10 = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (c10 != nullptr && dlsym(c10, kKeysName) != nullptr) {
    g_c10.store(c10, std::memory_order_release);
    g_watching.store(keys, std::memory_order_relaxed);
  }
  Py_RETURN_NONE;
}

PyObject* ThreadKeys(PyObject*, PyObject*) {
  const TorchKeys* keys = TorchKeysOfThread();
  if (keys == nullptr) Py_RETURN_NONE;
  return Py_BuildValue("KK", static_cast<unsigned long long>(keys->included),
                       static_cast<unsigned long long>(keys->excluded));
}
