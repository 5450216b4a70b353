#include "xla/array.h"

#include <algorithm>
#include <string>

#include "python/type_builder.h"
#include "xla/running_call.h"

namespace xla_calls {

namespace {

PyTypeObject* g_type = nullptr;

constexpr int32_t kInline = 8;
constexpr int32_t kMostDims = 32;

struct ArrayObject {
  PyObject_HEAD DLTensor tensor;
  DLManagedTensorVersioned* owner;  // for a view or a new array; null: an argument
  bool is_closed;
  int64_t* heap;  // shape and strides, if there are many dimensions
  int64_t room[2 * kInline];
};

ArrayObject* Self(PyObject* object) { return reinterpret_cast<ArrayObject*>(object); }

// A copy of the tensor's shape, because the tensor may be freed before the array.
Ref Make(const DLTensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > kMostDims) {
    PyErr_Format(PyExc_ValueError, "an array has at most %d dimensions (got %d)", kMostDims,
                 tensor.ndim);
    return Ref();
  }
  Ref object(PyType_GenericAlloc(g_type, 0));
  if (!object) return object;
  ArrayObject* self = Self(object.get());
  int64_t* room = self->room;
  if (tensor.ndim > kInline) {
    self->heap = static_cast<int64_t*>(PyMem_Malloc(2 * kMostDims * sizeof(int64_t)));
    room = self->heap;
    if (room == nullptr) return Ref(PyErr_NoMemory());
  }
  self->tensor = tensor;
  self->tensor.shape = room;
  self->tensor.strides = tensor.strides != nullptr ? room + tensor.ndim : nullptr;
  std::copy(tensor.shape, tensor.shape + tensor.ndim, room);
  if (tensor.strides != nullptr) {
    std::copy(tensor.strides, tensor.strides + tensor.ndim, room + tensor.ndim);
  }
  return object;
}

void Dealloc(PyObject* object) {
  ArrayObject* self = Self(object);
  if (self->owner != nullptr && self->owner->deleter != nullptr) self->owner->deleter(self->owner);
  PyMem_Free(self->heap);
  PyTypeObject* const type = Py_TYPE(object);
  PyObject_Free(object);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// XlaArray(shape, code, bits, device_type): an array without memory, a stand-in for tracing.
PyObject* New(PyTypeObject*, PyObject* args, PyObject*) {
  PyObject* shape;
  int code, bits, device;
  if (!PyArg_ParseTuple(args, "O!iii:XlaArray", &PyTuple_Type, &shape, &code, &bits, &device)) {
    return nullptr;
  }
  int64_t dims[kMostDims] = {};
  const Py_ssize_t count = PyTuple_Size(shape);
  for (Py_ssize_t i = 0; i < std::min<Py_ssize_t>(count, kMostDims); ++i) {
    dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (dims[i] == -1 && PyErr_Occurred() != nullptr) return nullptr;
  }
  const DLDataType dtype = {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
  return MakeArray(nullptr, {device, 0}, dtype, static_cast<int32_t>(count), dims).release();
}

// ---- the exchange API

struct Allocation {
  DLManagedTensorVersioned managed;
  Ref owner;
  int64_t shape[kMostDims];
};

void DeleteAllocation(DLManagedTensorVersioned* managed) {
  delete static_cast<Allocation*>(managed->manager_ctx);
}

Allocation* MakeAllocation(const DLTensor& tensor) {
  auto* made = new Allocation{{{1, 1}, nullptr, DeleteAllocation, 0, tensor}, Ref(), {}};
  made->managed.manager_ctx = made;
  std::copy(tensor.shape, tensor.shape + tensor.ndim, made->shape);
  made->managed.dl_tensor.shape = made->shape;
  return made;
}

// Called with the GIL held, like every call of a function.
int AllocateManaged(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                    void (*set_error)(void*, const char*, const char*)) {
  RunningCall* call = RunningCall::Current();
  if (call == nullptr) {
    set_error(context, "RuntimeError", "no XLA call is running on this thread");
    return -1;
  }
  size_t bytes = static_cast<size_t>(prototype->dtype.bits) * prototype->dtype.lanes / 8;
  for (int32_t i = 0; i < prototype->ndim; ++i) bytes *= static_cast<size_t>(prototype->shape[i]);
  DLTensor tensor = *prototype;
  std::string why;
  tensor.data =
      call->AllocateArray(prototype->dtype, prototype->ndim, prototype->shape, bytes, &why);
  tensor.device = call->device();
  tensor.strides = nullptr;
  tensor.byte_offset = 0;
  if (tensor.data == nullptr && bytes != 0) {
    const std::string text =
        "XLA cannot allocate " + std::to_string(bytes) + " bytes of scratch memory: " + why;
    set_error(context, "RuntimeError", text.c_str());
    return -1;
  }
  *out = &MakeAllocation(tensor)->managed;
  return 0;
}

bool IsOpen(PyObject* object) {
  if (!Self(object)->is_closed) return true;
  PyErr_SetString(PyExc_RuntimeError,
                  "the array is memory of an XLA call that has ended: a body cannot keep it");
  return false;
}

int ToManaged(void* object, DLManagedTensorVersioned** out) {
  auto* array = static_cast<PyObject*>(object);
  if (!IsOpen(array)) return -1;
  Allocation* made = MakeAllocation(Self(array)->tensor);
  made->owner = Ref::Borrow(array);
  *out = &made->managed;
  return 0;
}

int FromManaged(DLManagedTensorVersioned* tensor, void** object) {
  Ref array = Make(tensor->dl_tensor);
  if (!array) return -1;
  Self(array.get())->owner = tensor;
  if (RunningCall* call = RunningCall::Current()) call->Keep(array.get(), CloseArray);
  *object = array.release();
  return 0;
}

int ToView(void* object, DLTensor* out) {
  auto* array = static_cast<PyObject*>(object);
  if (!IsOpen(array)) return -1;
  *out = Self(array)->tensor;
  return 0;
}

int CurrentStream(int32_t, int32_t, void** stream) {
  const RunningCall* call = RunningCall::Current();
  *stream = call != nullptr ? call->stream() : nullptr;
  return 0;
}

const DLPackExchangeAPI g_exchange = {{1, 1},      nullptr, AllocateManaged, ToManaged,
                                      FromManaged, ToView,  CurrentStream};

}  // namespace

bool IsArray(PyObject* object) { return Py_TYPE(object) == g_type; }

Ref MakeArray(void* data, DLDevice device, DLDataType dtype, int32_t ndim, const int64_t* shape) {
  return Make({data, device, ndim, dtype, const_cast<int64_t*>(shape), nullptr, 0});
}

DLTensor TensorOf(PyObject* array) { return Self(array)->tensor; }

void CloseArray(PyObject* array) {
  Self(array)->tensor.data = nullptr;
  Self(array)->is_closed = true;
}

int AddArrayType(PyObject* module) {
  g_type = TypeBuilder("culaunch._core.XlaArray", sizeof(ArrayObject))
               .Slot(Py_tp_new, New)
               .Slot(Py_tp_dealloc, Dealloc)
               .AddTo(module);
  const Ref capsule(
      PyCapsule_New(const_cast<DLPackExchangeAPI*>(&g_exchange), "dlpack_exchange_api", nullptr));
  return g_type != nullptr && capsule &&
                 PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_type),
                                        "__dlpack_c_exchange_api__", capsule.get()) == 0
             ? 0
             : -1;
}

}  // namespace xla_calls
