#include "arguments/torch/allocated.h"

#include <cstring>
#include <utility>

#include "arguments/torch/allocator.h"
#include "arguments/torch/tensor.h"
#include "python/call_keeper.h"

namespace {

void FreeNow(Allocated* allocated) {
  if (allocated->tensor != nullptr) {
    FindTorchAllocator()->free(std::exchange(allocated->tensor, nullptr));
  }
  DLManagedTensorVersioned* managed = std::exchange(allocated->managed, nullptr);
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

void SetError(void*, const char* kind, const char* message) {
  if (PyErr_Occurred() != nullptr) return;
  if (std::strcmp(kind, "RuntimeError") == 0) return PyErr_SetString(PyExc_RuntimeError, message);
  PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
}

// While a graph records calls, their allocations stay, because the graph holds their addresses.
CULAUNCH_RARE void KeepFor(CallKeeper& keeper, Allocated* allocated) {
  auto* kept = new Allocated(std::exchange(*allocated, {nullptr, nullptr}));
  Ref capsule(PyCapsule_New(kept, nullptr, [](PyObject* own) {
    auto* memory = static_cast<Allocated*>(PyCapsule_GetPointer(own, nullptr));
    FreeNow(memory);
    delete memory;
  }));
  if (capsule) return keeper.Keep(std::move(capsule));
  PyErr_Clear();  // leaked: otherwise it could get another owner
}

}  // namespace

char* Allocate(const DLPackExchangeAPI* api, const DLTensor& like, Allocated* allocated) {
  *allocated = {nullptr, nullptr};
  if (api == g_torch_bits.api) {
    const TorchAllocator* torch = FindTorchAllocator();
    char* address = nullptr;
    if (torch != nullptr) allocated->tensor = torch->Make(like, &address);
    if (allocated->tensor != nullptr) return address;
  }
  DLTensor prototype = like;
  if (api->managed_tensor_allocator(&prototype, &allocated->managed, nullptr, SetError) != 0) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, "allocation failed");
    allocated->managed = nullptr;
    return nullptr;
  }
  const DLTensor& made = allocated->managed->dl_tensor;
  return static_cast<char*>(made.data) + made.byte_offset;
}

PyObject* TakeObject(const DLPackExchangeAPI* api, Allocated* allocated) {
  PyObject* object = nullptr;
  if (allocated->tensor != nullptr) {
    const TorchAllocator* torch = FindTorchAllocator();
    object = torch->wrap(allocated->tensor);
    torch->free(std::exchange(allocated->tensor, nullptr));
  } else {
    void* made = nullptr;
    DLManagedTensorVersioned* managed = std::exchange(allocated->managed, nullptr);
    if (api->managed_tensor_to_py_object_no_sync(managed, &made) != 0) return nullptr;
    object = static_cast<PyObject*>(made);
  }
  CallKeeper* keeper = CallKeeper::Current();
  if (CULAUNCH_UNLIKELY(keeper != nullptr) && object != nullptr) keeper->Keep(Ref::Borrow(object));
  return object;
}

void Free(Allocated* allocated) {
  if (!allocated->is_made()) return;
  if (CallKeeper* keeper = CallKeeper::Current()) return KeepFor(*keeper, allocated);
  FreeNow(allocated);
}
