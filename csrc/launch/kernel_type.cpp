#include "launch/kernel_type.h"

#include <cstring>
#include <mutex>
#include <new>

#include "driver/errors.h"
#include "launch/configuration.h"
#include "launch/launcher.h"
#include "launch/module_object.h"
#include "launch/occupancy.h"
#include "python/free_threaded_lock.h"
#include "python/recording.h"
#include "python/type_builder.h"

PyTypeObject* g_kernel_type = nullptr;

namespace {

// For the caches of all kernels.
std::mutex g_cache_mutex;

// types: None, or for each parameter (class, DLPack code, bits, whether it points to writable
// memory).
bool FillSlots(KernelObject* self, PyObject* types) {
  const auto& parameters = self->state->parameters();
  self->count = parameters.size();
  self->bytes = self->state->ParameterBytes();
  self->slots = new (std::nothrow) ParameterSlot[self->count + 1];
  if (self->slots == nullptr) {
    PyErr_NoMemory();
    return false;
  }
  if (types != Py_None &&
      (!PyTuple_Check(types) || static_cast<size_t>(PyTuple_Size(types)) != self->count)) {
    PyErr_SetString(PyExc_ValueError, "types must be None or a tuple with one entry per parameter");
    return false;
  }
  for (size_t i = 0; i < self->count; ++i) {
    ParameterSlot& slot = self->slots[i];
    slot.offset = parameters[i].offset;
    slot.size = parameters[i].size;
    if (types == Py_None) continue;
    int type_class = 0;
    int code = 0;
    int bits = 0;
    int may_write = 0;
    PyObject* entry = PyTuple_GetItem(types, static_cast<Py_ssize_t>(i));
    if (!PyArg_ParseTuple(entry, "iiip", &type_class, &code, &bits, &may_write)) return false;
    slot.type_class = static_cast<TypeClass>(type_class);
    slot.type = {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
    slot.may_write = may_write != 0;
  }
  return true;
}

// Kernel(module, name, types): arguments beyond these are a subclass's.
PyObject* NewKernel(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* module = nullptr;
  const char* name = nullptr;
  PyObject* types = nullptr;
  if (!PyArg_ParseTuple(args, "O!sO:Kernel", g_module_type, &module, &name, &types)) {
    return nullptr;
  }
  auto* state = Guarded<culaunch::KernelState*>("KernelNotFoundError", nullptr, [&] {
    culaunch::Module& library = *reinterpret_cast<ModuleObject*>(module)->module;
    return WithoutGil([&] { return &library.GetKernel(name).state(); });
  });
  if (state == nullptr) return nullptr;
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  Py_INCREF(module);
  KernelOf(self)->module = module;
  KernelOf(self)->state = state;
  if (!FillSlots(KernelOf(self), types)) {
    Py_DECREF(self);
    return nullptr;
  }
  return self;
}

int TraverseKernel(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(KernelOf(self)->module);
  for (CachedLauncher& cached : KernelOf(self)->cache) {
    Py_VISIT(cached.key);
    Py_VISIT(cached.launcher);
  }
  return 0;
}

int ClearKernel(PyObject* self) {
  KernelOf(self)->cached = 0;
  for (CachedLauncher& cached : KernelOf(self)->cache) {
    Py_CLEAR(cached.key);
    Py_CLEAR(cached.launcher);
  }
  return 0;
}

void DeallocKernel(PyObject* self) {
  DeallocCollected(self, [self] {
    ClearKernel(self);
    Py_CLEAR(KernelOf(self)->module);
    delete[] KernelOf(self)->slots;
  });
}

// The configuration of `kernel[grid, block]` and `kernel[grid, block, shared_memory]`. False,
// without an error, if the key has another form.
bool ReadSimpleKey(PyObject* key, uint32_t* numbers) {
  if (!PyTuple_CheckExact(key)) return false;
  const Py_ssize_t size = PyTuple_Size(key);
  if (size != 2 && size != 3) return false;
  numbers[6] = 0;
  return QuickDims(PyTuple_GetItem(key, 0), numbers) &&
         QuickDims(PyTuple_GetItem(key, 1), numbers + 3) &&
         (size == 2 || QuickNumber(PyTuple_GetItem(key, 2), &numbers[6]));
}

// The same numbers, compared by identity. Cached keys are tuples of exact integers, and of tuples
// of these, which cannot change.
bool HasSameItems(const CachedLauncher& kept, PyObject* key) {
  if (!PyTuple_CheckExact(key) || Py_SIZE(key) != kept.size) return false;
  for (Py_ssize_t i = 0; i < kept.size; ++i) {
    if (kept.items[i] != PyTuple_GetItem(key, i)) return false;
  }
  return true;
}

// The launcher of a key, or of its numbers if they are given.
PyObject* FindLauncher(KernelObject* self, PyObject* key, const uint32_t* numbers) {
  const FreeThreadedLock lock(g_cache_mutex);
  for (int i = 0; i < self->cached; ++i) {
    const CachedLauncher& cached = self->cache[i];
    const bool is_same = numbers != nullptr
                             ? std::memcmp(cached.numbers, numbers, sizeof cached.numbers) == 0
                             : HasSameItems(cached, key);
    if (is_same) {
      Py_INCREF(cached.launcher);
      return cached.launcher;
    }
  }
  return nullptr;
}

void KeepLauncher(KernelObject* self, PyObject* key, const uint32_t* numbers, PyObject* launcher) {
  CachedLauncher old = {};
  {
    const FreeThreadedLock lock(g_cache_mutex);
    CachedLauncher& slot = self->cache[self->next];
    old = slot;
    Py_INCREF(key);
    Py_INCREF(launcher);
    slot.key = key;
    slot.size = PyTuple_Size(key);
    for (Py_ssize_t i = 0; i < slot.size; ++i) slot.items[i] = PyTuple_GetItem(key, i);
    slot.launcher = launcher;
    std::memcpy(slot.numbers, numbers, sizeof slot.numbers);
    self->next = (self->next + 1) % KernelObject::kCached;
    if (self->cached < KernelObject::kCached) ++self->cached;
  }
  Py_XDECREF(old.key);
  Py_XDECREF(old.launcher);
}

PyObject* Subscript(PyObject* self, PyObject* key) {
  if (CULAUNCH_UNLIKELY(IsRecording())) {
    Ref recorded;
    if (RecordCall(self, "getitem", &key, 1, nullptr, &recorded)) return recorded.release();
  }
  PyObject* launcher = FindLauncher(KernelOf(self), key, nullptr);
  if (launcher != nullptr) return launcher;
  uint32_t numbers[7];
  if (!ReadSimpleKey(key, numbers)) return LauncherFromKey(KernelOf(self), key);
  launcher = FindLauncher(KernelOf(self), key, numbers);
  if (launcher != nullptr) return launcher;
  launcher = LauncherFromKey(KernelOf(self), key);
  if (launcher != nullptr) KeepLauncher(KernelOf(self), key, numbers, launcher);
  return launcher;
}

PyObject* Configure(PyObject* self, PyObject* args, PyObject* keywords) {
  if (CULAUNCH_UNLIKELY(IsRecording())) {
    const Ref none(PyDict_New());
    Ref recorded;
    if (!none) return nullptr;
    if (Record(self, "configure", args, keywords != nullptr ? keywords : none.get(), &recorded)) {
      return recorded.release();
    }
  }
  return LauncherFromKeywords(KernelOf(self), args, keywords);
}

PyObject* GetModule(PyObject* self, void*) {
  Py_INCREF(KernelOf(self)->module);
  return KernelOf(self)->module;
}

PyObject* GetName(PyObject* self, void*) {
  return PyUnicode_FromString(KernelOf(self)->state->name().c_str());
}

PyObject* IsConfigured(PyObject* self, void*) {
  return PyBool_FromLong(KernelOf(self)->is_configured.load(std::memory_order_relaxed));
}

PyObject* GetKernelHandle(PyObject* self, void*) {
  return PyLong_FromVoidPtr(KernelOf(self)->state->handle());
}

}  // namespace

int AddKernelType(PyObject* module) {
  g_kernel_type =
      TypeBuilder("culaunch._core.Kernel", sizeof(KernelObject), Py_TPFLAGS_BASETYPE)
          .Slot(Py_tp_new, NewKernel)
          .Slot(Py_tp_dealloc, DeallocKernel)
          .Slot(Py_mp_subscript, Subscript)
          .Collected(TraverseKernel, ClearKernel)
          .Method("configure", Configure)
          .Method("_attribute", KernelAttribute)
          .Method("_make_ready", KernelMakeReady)
          .Method("_max_dynamic_shared_memory", KernelMaxDynamicSharedMemory)
          .Method("_occupancy", KernelOccupancy)
          .Property("_is_configured", IsConfigured)
          .Property("_module", GetModule)
          .Property("name", GetName, "The name in the image: mangled, unless it is extern \"C\".")
          .Property("handle", GetKernelHandle, "The CUkernel; 0 once the module is unloaded.")
          .AddTo(module);
  return g_kernel_type != nullptr ? 0 : -1;
}
