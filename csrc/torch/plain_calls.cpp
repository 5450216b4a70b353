#include "torch/plain_calls.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "arguments/torch/modes.h"
#include "arguments/torch/tensor.h"

namespace torch_operators {

namespace {

struct PlainCalls {
  bool (*has_callbacks)();      // at::hasCallbacks: a profiler observes calls
  bool (*has_function_mode)();  // at::impl::torch_function_mode_enabled
  bool (*is_gradient_enabled)();
  PyObject* types;  // a tuple
  uint64_t keys;
  TorchKeys inference;
};

// Set once everything is found, and kept for the life of the process.
std::atomic<const PlainCalls*> g_plain{nullptr};

void* LibraryOf(PyObject* paths, Py_ssize_t index) {
  const char* path = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(paths, index), nullptr);
  return path != nullptr ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

}  // namespace

PyObject* OpenPlainCalls(PyObject*, PyObject* args) {
  PyObject *libraries, *tensor, *types, *inference;
  unsigned long long keys = 0;
  if (!PyArg_ParseTuple(args, "O!OO!KO:open_plain_calls", &PyTuple_Type, &libraries, &tensor,
                        &PyTuple_Type, &types, &keys, &inference)) {
    return nullptr;
  }
  if (g_plain.load(std::memory_order_acquire) != nullptr) Py_RETURN_NONE;
  void* c10 = LibraryOf(libraries, 0);
  void* cpu = LibraryOf(libraries, 1);
  PyErr_Clear();
  if (c10 == nullptr || cpu == nullptr) return PyUnicode_FromString("torch's libraries");
  const TorchKeys* now = TorchKeysOfThread();
  if (now == nullptr || inference == Py_None)
    return PyUnicode_FromString("dispatch keys of threads");
  PlainCalls found = {};
  const struct {
    const char* name;
    void* library;
    bool (**function)();
  } names[] = {
      {"_ZN2at12hasCallbacksEv", cpu, &found.has_callbacks},
      {"_ZN2at4impl27torch_function_mode_enabledEv", cpu, &found.has_function_mode},
      {"_ZN3c108GradMode10is_enabledEv", c10, &found.is_gradient_enabled},
  };
  for (const auto& one : names) {
    *one.function = reinterpret_cast<bool (*)()>(dlsym(one.library, one.name));
    if (*one.function == nullptr) return PyUnicode_FromString(one.name);
  }
  unsigned long long included = 0;
  unsigned long long excluded = 0;
  if (!PyArg_ParseTuple(inference, "KK", &included, &excluded)) return nullptr;
  const TorchBits& bits = g_torch_bits;
  if (bits.api == nullptr || bits.gradient == 0) return PyUnicode_FromString("a tensor's layout");
  const char* inner;
  uint64_t word;
  std::memcpy(&inner, reinterpret_cast<const char*>(tensor) + bits.tensor, sizeof inner);
  std::memcpy(&word, inner + bits.keys, sizeof word);
  // A thread that is as it began has no words, and one in another mode has some.
  if ((word & keys) != word || word == 0 || (now->included | now->excluded) != 0 ||
      (included | excluded) == 0) {
    return PyUnicode_FromString("dispatch keys that are as expected");
  }
  found.types = Ref::Borrow(types).release();
  found.keys = keys;
  found.inference = {included, excluded};
  g_plain.store(new PlainCalls(found), std::memory_order_release);
  Py_RETURN_NONE;
}

bool HasPlainKeys() {
  const PlainCalls* plain = g_plain.load(std::memory_order_acquire);
  if (plain == nullptr) return false;
  const TorchKeys* keys = TorchKeysOfThread();
  return (keys->included | keys->excluded) == 0 || (keys->included == plain->inference.included &&
                                                    keys->excluded == plain->inference.excluded);
}

bool IsPlainThread() {
  if (!HasPlainKeys()) return false;
  const PlainCalls* plain = g_plain.load(std::memory_order_acquire);
  return !plain->has_callbacks() && !plain->has_function_mode();
}

bool IsGradientRecorded() { return g_plain.load(std::memory_order_acquire)->is_gradient_enabled(); }

Plain IsPlainTensor(PyObject* object) {
  const PlainCalls& plain = *g_plain.load(std::memory_order_acquire);
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  bool is_known = false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(plain.types); ++i) {
    is_known = is_known || PyTuple_GetItem(plain.types, i) == type;
  }
  if (!is_known) return Plain::kNo;
  const TorchBits& bits = g_torch_bits;
  if (bits.api == nullptr) return Plain::kNo;
  const char* inner;
  uint64_t keys;
  const void* gradient;
  std::memcpy(&inner, reinterpret_cast<const char*>(object) + bits.tensor, sizeof inner);
  std::memcpy(&keys, inner + bits.keys, sizeof keys);
  std::memcpy(&gradient, inner + bits.gradient, sizeof gradient);
  if ((keys & ~plain.keys) != 0) return Plain::kNo;
  if (gradient == nullptr) return Plain::kYes;
  return IsForwardMode() ? Plain::kNo : Plain::kMayHaveGradient;
}

}  // namespace torch_operators
