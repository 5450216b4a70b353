#include "arguments/torch/tensor_versions.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "arguments/torch/tensor.h"

namespace {

struct Versions {
  void (*bump)(const void* tensor);  // torch::autograd::impl::bump_version; null: not found
  size_t tensor;                     // offset of the tensor in its Python object
  size_t keys;                       // offset there of its dispatch keys
  uint64_t counted;                  // those of tensors with a counter; 0: not known
  PyTypeObject* type;                // torch.Tensor
  PyObject* count;                   // the Python function
};

// Set as a whole. A replaced value may still be in use, so it is kept.
std::atomic<const Versions*> g_versions{nullptr};

}  // namespace

PyObject* OpenVersions(PyObject*, PyObject* args) {
  PyObject *libraries, *tensor, *count;
  unsigned long long keys = 0;
  if (!PyArg_ParseTuple(args, "O!OKO:open_versions", &PyTuple_Type, &libraries, &tensor, &keys,
                        &count)) {
    return nullptr;
  }
  Versions found = {};
  for (Py_ssize_t i = 0; i < PyTuple_Size(libraries); ++i) {
    const char* path = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(libraries, i), nullptr);
    if (path == nullptr) return nullptr;
    void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void* bump = library != nullptr
                     ? dlsym(library, "_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE")
                     : nullptr;
    if (bump != nullptr) found.bump = reinterpret_cast<void (*)(const void*)>(bump);
  }
  const TorchBits& bits = g_torch_bits;
  if (bits.api == nullptr) found.bump = nullptr;  // the offsets are not known
  found.tensor = bits.tensor;
  found.keys = bits.keys;
  if (found.bump != nullptr) {
    const char* inner;
    uint64_t has;
    std::memcpy(&inner, reinterpret_cast<const char*>(tensor) + bits.tensor, sizeof inner);
    std::memcpy(&has, inner + bits.keys, sizeof has);
    found.counted = (has & keys) == keys ? keys : 0;
  }
  found.type = reinterpret_cast<PyTypeObject*>(
      Ref::Borrow(reinterpret_cast<PyObject*>(Py_TYPE(tensor))).release());
  found.count = Ref::Borrow(count).release();
  g_versions.store(new Versions(found), std::memory_order_release);
  Py_RETURN_NONE;
}

bool AreVersionsOpen() { return g_versions.load(std::memory_order_acquire) != nullptr; }

bool IsTorchTensor(PyObject* object) {
  PyTypeObject* type = g_versions.load(std::memory_order_acquire)->type;
  return Py_TYPE(object) == type || PyType_IsSubtype(Py_TYPE(object), type) != 0;
}

bool CountTensor(PyObject* tensor) {
  const Versions& versions = *g_versions.load(std::memory_order_acquire);
  if (versions.bump == nullptr) {
    return Ref(PyObject_CallFunctionObjArgs(versions.count, tensor, nullptr)).get() != nullptr;
  }
  const char* place = reinterpret_cast<const char*>(tensor) + versions.tensor;
  const char* inner;
  uint64_t keys;
  std::memcpy(&inner, place, sizeof inner);
  std::memcpy(&keys, inner + versions.keys, sizeof keys);
  // A tensor of inference mode has no counter, and autograd cannot have saved it.
  if (versions.counted != 0 && (keys & versions.counted) == 0) return true;
  try {
    versions.bump(place);
  } catch (...) {
    // torch throws for these tensors, outside the mode.
  }
  return true;
}
