#include "arguments/protocols/dlpack_protocol.h"

namespace {

// DLPack numbers the streams it is given: 1 is the legacy default stream, 2 the per-thread one,
// 0 is ambiguous and not allowed (array API standard, __dlpack__).
Ref StreamForDlpack(DLDevice device, CUstream stream) {
  if (device.device_type != culaunch::kDLCUDA && device.device_type != culaunch::kDLCUDAManaged) {
    return Ref::Borrow(Py_None);
  }
  return Ref(stream == nullptr ? PyLong_FromLong(1) : PyLong_FromVoidPtr(stream));
}

Ref CallDlpack(PyObject* array, PyObject* stream, bool versioned) {
  const Ref method(PyObject_GetAttrString(array, "__dlpack__"));
  const Ref arguments(PyTuple_New(0));
  const Ref keywords(versioned
                         ? Py_BuildValue("{s:O,s:(ii)}", "stream", stream, "max_version", 1, 0)
                         : Py_BuildValue("{s:O}", "stream", stream));
  if (!method || !arguments || !keywords) return Ref();
  return Ref(PyObject_Call(method.get(), arguments.get(), keywords.get()));
}

}  // namespace

bool ReadDlpackDevice(PyObject* array, DLDevice* device) {
  const Ref pair(PyObject_CallMethod(array, "__dlpack_device__", nullptr));
  if (pair && !PyTuple_Check(pair.get())) {
    PyErr_Format(PyExc_TypeError, "__dlpack_device__ must return (type, id) (got %R)", pair.get());
    return false;
  }
  return pair && PyArg_ParseTuple(pair.get(), "ii;__dlpack_device__ must return (type, id)",
                                  &device->device_type, &device->device_id) != 0;
}

bool ReadDlpack(PyObject* array, const TypeEntry& entry, DLDevice device, CUstream stream,
                ArrayView* view, DLTensor* copy) {
  const Ref stream_number = StreamForDlpack(device, stream);
  if (!stream_number) return false;
  view->owner = CallDlpack(array, stream_number.get(), entry.versioned_dlpack);
  if (!view->owner && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();  // a producer from before max_version
    view->owner = CallDlpack(array, stream_number.get(), false);
  }
  if (!view->owner) return false;
  PyObject* capsule = view->owner.get();
  const DLTensor* tensor = nullptr;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned") != 0) {
    auto* managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    tensor = &managed->dl_tensor;
    view->is_read_only = (managed->flags & 1) != 0;  // DLPACK_FLAG_BITMASK_READ_ONLY
  } else if (PyCapsule_IsValid(capsule, "dltensor") != 0) {
    tensor = &static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"))->dl_tensor;
  } else {
    PyErr_Format(PyExc_TypeError, "__dlpack__ of %R returned %R, not a DLPack capsule",
                 reinterpret_cast<PyObject*>(Py_TYPE(array)), capsule);
    return false;
  }
  view->data = static_cast<char*>(tensor->data) + tensor->byte_offset;
  view->device = tensor->device;
  view->dtype = tensor->dtype;
  view->extent = ExtentOf(*tensor);
  if (copy != nullptr) *copy = *tensor;
  return true;
}
