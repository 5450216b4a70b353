#include "arguments/device_array/device_array.h"

#include <culaunch/guard.h>

#include <cstdint>

#include "arguments/device_array/object.h"
#include "driver/context_handles.h"
#include "driver/errors.h"
#include "python/type_builder.h"

using namespace device_array;

namespace {

PyTypeObject* g_array_type = nullptr;

// In bytes. A structure has one lane for each byte.
int64_t ItemSize(DLDataType dtype) {
  return (int64_t{dtype.bits} * (dtype.lanes > 1 ? dtype.lanes : 1) + 7) / 8;
}

// An array without memory. Null with a Python error set.
Ref Make(PyTypeObject* type, PyObject* driver, DLDevice device, PyObject* shape, DLDataType dtype) {
  Ref object(PyType_GenericAlloc(type, 0));
  if (!object) return object;
  ArrayObject* self = Self(object.get());
  self->driver = Ref::Borrow(driver).release();
  self->device = device;
  self->dtype = dtype;
  self->ndim = static_cast<int32_t>(PyTuple_Size(shape));
  const auto ndim = static_cast<size_t>(self->ndim);
  self->shape = static_cast<int64_t*>(PyMem_Malloc((2 * ndim + 1) * sizeof(int64_t)));
  if (self->shape == nullptr) return Ref(PyErr_NoMemory());
  int64_t elements = 1;
  for (size_t i = ndim; i-- > 0;) {
    const int64_t size = PyLong_AsLongLong(PyTuple_GetItem(shape, static_cast<Py_ssize_t>(i)));
    if (size == -1 && PyErr_Occurred() != nullptr) return Ref();
    if (size < 0 || (size != 0 && elements > INT64_MAX / ItemSize(dtype) / size)) {
      PyErr_Format(PyExc_ValueError,
                   "shape must have no negative size, and less than 2^63 bytes (got %R)", shape);
      return Ref();
    }
    self->shape[i] = size;
    self->shape[ndim + i] = elements;
    elements *= size;
  }
  self->bytes = static_cast<size_t>(elements) * static_cast<size_t>(ItemSize(dtype));
  return object;
}

// DeviceArray(driver, ordinal, shape, code, bits, lanes, stream=None): with a stream, allocated in
// its order.
PyObject* New(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* driver = nullptr;
  PyObject* shape = nullptr;
  PyObject* stream = Py_None;
  int ordinal = 0;
  DLDataType dtype = {0, 0, 0};
  if (!PyArg_ParseTuple(args, "OiO!bbH|O:DeviceArray", &driver, &ordinal, &PyTuple_Type, &shape,
                        &dtype.code, &dtype.bits, &dtype.lanes, &stream)) {
    return nullptr;
  }
  culaunch::Driver* table = DriverOf(driver);
  if (table == nullptr) return nullptr;
  const bool is_in_order = stream != Py_None;
  const unsigned long long handle = is_in_order ? PyLong_AsUnsignedLongLong(stream) : 0;
  if (PyErr_Occurred() != nullptr) return nullptr;
  Ref object = Make(type, driver, {table->device_types().front(), ordinal}, shape, dtype);
  if (!object) return nullptr;
  ArrayObject* self = Self(object.get());
  const bool allocated = Guarded<bool>(nullptr, false, [&] {
    table->Device(ordinal);
    if (self->bytes == 0) return true;
    CUresult result;
    {
      const ReleaseGil released;
      const culaunch::RelaxedCaptureGuard relaxed(*table);
      const culaunch::DeviceGuard guard(*table, ordinal);
      result = guard.code();
      if (result == CUDA_SUCCESS) {
        result = is_in_order ? table->cuMemAllocAsync(&self->data, self->bytes, StreamOf(handle))
                             : table->cuMemAlloc(&self->data, self->bytes);
      }
      if (result == CUDA_SUCCESS) NoteHandle(*table, ordinal, HandleKind::kMemory, self->data);
    }
    if (result != CUDA_SUCCESS) self->data = 0;
    table->Check(result, "allocating " + std::to_string(self->bytes) + " bytes on device " +
                             std::to_string(ordinal));
    return true;
  });
  return allocated ? object.release() : nullptr;
}

// DeviceArray._over(driver, device_type, ordinal, address, shape, code, bits, lanes, keeper): an
// array over memory that `keeper` keeps alive.
PyObject* Over(PyObject* type, PyObject* args) {
  PyObject *driver, *shape, *keeper;
  int device_type, ordinal;
  DLDataType dtype = {0, 0, 0};
  unsigned long long address;
  if (!PyArg_ParseTuple(args, "OiiKO!bbHO:_over", &driver, &device_type, &ordinal, &address,
                        &PyTuple_Type, &shape, &dtype.code, &dtype.bits, &dtype.lanes, &keeper) ||
      DriverOf(driver) == nullptr) {
    return nullptr;
  }
  Ref object =
      Make(reinterpret_cast<PyTypeObject*>(type), driver, {device_type, ordinal}, shape, dtype);
  if (!object) return nullptr;
  Self(object.get())->keeper = Ref::Borrow(keeper).release();
  Self(object.get())->data = address;
  return object.release();
}

void Dealloc(PyObject* object) {
  ArrayObject* self = Self(object);
  PyTypeObject* type = Py_TYPE(object);
  if (self->owner != nullptr && self->owner->deleter != nullptr) {
    self->owner->deleter(self->owner);
  } else if (self->data != 0 && self->owner == nullptr && self->keeper == nullptr) {
    // An array may be freed while an exception propagates, and an emulated driver runs Python.
    PyObject *type_raised, *value, *trace;
    PyErr_Fetch(&type_raised, &value, &trace);
    {
      // Freeing waits for the kernels that use it (driver API, cuMemFree).
      culaunch::Driver& driver = DriverOfArray(self);
      const ReleaseGil released;
      const culaunch::RelaxedCaptureGuard relaxed(driver);
      const culaunch::DeviceGuard guard(driver, self->device.device_id);
      if (guard.code() == CUDA_SUCCESS && MayRelease(driver, HandleKind::kMemory, self->data)) {
        driver.cuMemFree(self->data);
      }
    }
    PyErr_Restore(type_raised, value, trace);
  }
  PyMem_Free(self->shape);
  Py_XDECREF(self->keeper);
  Py_XDECREF(self->driver);
  // A subclass defined in Python is garbage-collected, and freed by another function.
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// The numbers of a C-contiguous tensor. Raises an error for any other tensor.
bool TakeLayout(ArrayObject* self, const DLTensor& tensor) {
  const auto ndim = static_cast<size_t>(tensor.ndim);
  self->shape = static_cast<int64_t*>(PyMem_Malloc((2 * ndim + 1) * sizeof(int64_t)));
  if (self->shape == nullptr) return PyErr_NoMemory(), false;
  bool contiguous = true;
  int64_t elements = 1;
  for (size_t i = ndim; i-- > 0;) {
    const int64_t stride = tensor.strides != nullptr ? tensor.strides[i] : elements;
    contiguous = contiguous && (stride == elements || tensor.shape[i] <= 1);
    self->shape[i] = tensor.shape[i];
    self->shape[ndim + i] = elements;
    elements *= tensor.shape[i];
  }
  self->ndim = tensor.ndim;
  self->device = tensor.device;
  self->dtype = tensor.dtype;
  self->bytes = static_cast<size_t>(elements) * static_cast<size_t>(ItemSize(tensor.dtype));
  self->data = reinterpret_cast<CUdeviceptr>(tensor.data) + tensor.byte_offset;
  if (contiguous || elements == 0) return true;
  PyErr_SetString(PyExc_BufferError,
                  "culaunch.DeviceArray must be contiguous, but the tensor is not");
  return false;
}

// DeviceArray._adopt(driver, capsule "dltensor_versioned"): an array over another library's memory.
// The capsule's tensor is taken over if this succeeds.
PyObject* Adopt(PyObject* type, PyObject* args) {
  PyObject *driver, *capsule;
  if (!PyArg_ParseTuple(args, "OO:_adopt", &driver, &capsule)) return nullptr;
  culaunch::Driver* table = DriverOf(driver);
  if (table == nullptr) return nullptr;
  auto* managed =
      static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  if (managed == nullptr) return nullptr;
  const DLTensor& tensor = managed->dl_tensor;
  if (!table->IsDeviceMemory(tensor.device.device_type) || tensor.device.device_id < 0 ||
      tensor.device.device_id >= table->device_count()) {
    PyErr_Format(PyExc_BufferError, "DLPack device (%d, %d) does not belong to the driver in use",
                 tensor.device.device_type, tensor.device.device_id);
    return nullptr;
  }
  Ref object(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(type), 0));
  if (!object) return nullptr;
  ArrayObject* self = Self(object.get());
  self->driver = Ref::Borrow(driver).release();
  const bool taken = TakeLayout(self, tensor);
  if (!taken) self->data = 0;  // it is not the array's to free
  if (!taken || PyCapsule_SetName(capsule, "used_dltensor_versioned") != 0) {
    self->data = 0;
    return nullptr;
  }
  self->owner = managed;
  return object.release();
}

// _dlpack(versioned)
PyObject* Dlpack(PyObject* self, PyObject* args) {
  int versioned = 0;
  if (!PyArg_ParseTuple(args, "p:_dlpack", &versioned)) return nullptr;
  return CapsuleOf(self, versioned != 0);
}

PyObject* GetDriver(PyObject* self, void*) { return Ref::Borrow(Self(self)->driver).release(); }
PyObject* GetAddress(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(Self(self)->data));
}
PyObject* GetBytes(PyObject* self, void*) { return PyLong_FromSize_t(Self(self)->bytes); }
PyObject* GetDevice(PyObject* self, void*) {
  return Py_BuildValue("ii", Self(self)->device.device_type, Self(self)->device.device_id);
}
PyObject* GetShape(PyObject* self, void*) {
  Ref tuple(PyTuple_New(Self(self)->ndim));
  for (int32_t i = 0; tuple && i < Self(self)->ndim; ++i) {
    PyTuple_SetItem(tuple.get(), i, PyLong_FromLongLong(Self(self)->shape[i]));
  }
  return tuple.release();
}

}  // namespace

int AddDeviceArrayType(PyObject* module) {
  g_array_type = TypeBuilder("culaunch._core.DeviceArray", sizeof(ArrayObject), Py_TPFLAGS_BASETYPE)
                     .Slot(Py_tp_new, New)
                     .Slot(Py_tp_dealloc, Dealloc)
                     .Method("_adopt", Adopt, METH_VARARGS | METH_CLASS)
                     .Method("_over", Over, METH_VARARGS | METH_CLASS)
                     .Method("_copy_from", CopyFrom)
                     .Method("_copy_to", CopyTo)
                     .Method("_dlpack", Dlpack)
                     .Property("_driver", GetDriver)
                     .Property("address", GetAddress, "The address of the first element.")
                     .Property("nbytes", GetBytes, "The size in bytes.")
                     .Property("_dlpack_device", GetDevice)
                     .Property("shape", GetShape, "The size in each dimension, in elements.")
                     .AddTo(module);
  return g_array_type != nullptr ? 0 : -1;
}

bool IsDeviceArray(PyObject* object) { return PyObject_TypeCheck(object, g_array_type) != 0; }

DLTensor ViewOf(PyObject* array) {
  ArrayObject* self = Self(array);
  return {reinterpret_cast<void*>(self->data),
          self->device,
          self->ndim,
          self->dtype,
          self->shape,
          self->shape + self->ndim,
          0};
}

bool SetDeviceArrayAttribute(const char* name, PyObject* value) {
  return PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_array_type), name, value) == 0;
}
