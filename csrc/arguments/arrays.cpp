#include "arguments/arrays.h"

#include <culaunch/guard.h>

#include <cstdlib>
#include <string>

#include "arguments/torch_tensor.h"
#include "driver/driver_object.h"
#include "driver/errors.h"

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

bool ReadDlpack(PyObject* array, const TypeEntry& entry, DLDevice device, CUstream stream,
                ArrayView* view, DLTensor* copy = nullptr) {
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
    PyErr_Format(PyExc_TypeError, "__dlpack__ of %R gave %R, not a DLPack capsule",
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

// The element type of an array interface's typestr, such as "<f4".
DLDataType TypeOfTypestr(PyObject* typestr) {
  Py_ssize_t size = 0;
  const char* text = typestr != nullptr && PyUnicode_Check(typestr)
                         ? PyUnicode_AsUTF8AndSize(typestr, &size)
                         : nullptr;
  if (text == nullptr || size < 3) {
    PyErr_Clear();
    return {0, 0, 0};
  }
  const long long bytes = std::atoll(text + 2);
  const auto bits = static_cast<uint8_t>(bytes > 0 && bytes <= 16 ? bytes * 8 : 0);
  switch (text[1]) {
    case 'i':
      return {0, bits, 1};
    case 'u':
      return {1, bits, 1};
    case 'f':
      return {2, bits, 1};
    case 'c':
      return {5, bits, 1};
    case 'b':
      return {6, bits, 1};
    default:
      return {0, 0, 0};
  }
}

// The bytes that an array interface's shape, strides (in bytes; None: C order) and typestr span.
Extent ExtentOfInterface(PyObject* interface, void* data) {
  PyObject* shape = PyDict_GetItemString(interface, "shape");
  PyObject* strides = PyDict_GetItemString(interface, "strides");
  PyObject* typestr = PyDict_GetItemString(interface, "typestr");
  Py_ssize_t length = 0;
  const char* text = typestr != nullptr && PyUnicode_Check(typestr)
                         ? PyUnicode_AsUTF8AndSize(typestr, &length)
                         : nullptr;
  if (text == nullptr || length < 3 || shape == nullptr || !PyTuple_Check(shape)) return {data, 0};
  // A text's characters are counted, of four bytes each; everything else says its bytes.
  const long long item = std::atoll(text + 2) * (text[1] == 'U' ? 4 : 1);
  const bool is_strided = strides != nullptr && PyTuple_Check(strides);
  long long before = 0;
  long long after = 0;
  long long dense = item;
  for (Py_ssize_t i = PyTuple_Size(shape); i-- > 0;) {
    const long long size = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    const long long stride = is_strided ? PyLong_AsLongLong(PyTuple_GetItem(strides, i)) : dense;
    if (size <= 0) return {data, 0};
    dense *= size;
    (stride < 0 ? before : after) += (size - 1) * stride;
  }
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return {data, 0};
  }
  return {static_cast<char*>(data) + before, static_cast<size_t>(after - before + item)};
}

Ref Interface(PyObject* array, const char* name, ArrayView* view) {
  Ref interface(PyObject_GetAttrString(array, name));
  if (!interface) return Ref();
  if (!PyDict_Check(interface.get())) {
    PyErr_Format(PyExc_TypeError, "%s of %R is not a dict", name,
                 reinterpret_cast<PyObject*>(Py_TYPE(array)));
    return Ref();
  }
  PyObject* pair = PyDict_GetItemString(interface.get(), "data");
  if (pair == nullptr || !PyTuple_Check(pair) || PyTuple_Size(pair) < 1) {
    PyErr_Format(PyExc_TypeError, "%s of %R has no (address, read_only) pair as \"data\"", name,
                 reinterpret_cast<PyObject*>(Py_TYPE(array)));
    return Ref();
  }
  PyObject* address = PyTuple_GetItem(pair, 0);
  view->data = address == Py_None ? nullptr : PyLong_AsVoidPtr(address);
  if (PyErr_Occurred() != nullptr) return Ref();
  const int is_read_only = PyTuple_Size(pair) > 1 ? PyObject_IsTrue(PyTuple_GetItem(pair, 1)) : 0;
  if (is_read_only < 0) return Ref();
  view->is_read_only = is_read_only != 0;
  PyObject* typestr = PyDict_GetItemString(interface.get(), "typestr");
  if (typestr != nullptr && PyUnicode_Check(typestr) && PyUnicode_ReadChar(typestr, 0) == '>') {
    PyErr_Format(PyExc_ValueError,
                 "the array's numbers are in the other byte order, %R: convert it", typestr);
    return Ref();
  }
  PyErr_Clear();  // an empty typestr has no first character
  view->dtype = TypeOfTypestr(typestr);
  return interface;
}

// __cuda_array_interface__, version 3 (Numba's documentation). The device is the pointer's, unless
// the array has said it.
bool ReadCudaInterface(PyObject* array, culaunch::Driver& driver, ArrayView* view,
                       const DLDevice* known = nullptr) {
  view->owner = Interface(array, "__cuda_array_interface__", view);
  if (!view->owner) return false;
  if (known != nullptr) {
    view->device = *known;
    return true;
  }
  view->device = {culaunch::kDLCUDA, 0};
  if (view->data == nullptr) {
    view->device.device_id = culaunch::CurrentDevice(driver);
    return true;
  }
  int ordinal = 0;
  const CUresult code = driver.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                                     reinterpret_cast<CUdeviceptr>(view->data));
  if (code != CUDA_SUCCESS) {
    PyErr_Format(PyExc_ValueError,
                 "the driver does not know the address %p in __cuda_array_interface__ of %R: %s",
                 view->data, reinterpret_cast<PyObject*>(Py_TYPE(array)),
                 driver.Describe(code).c_str());
    return false;
  }
  view->device.device_id = ordinal;
  return true;
}

// Wait for the stream that an interface's data is ready on, unless it is the launch's own.
bool WaitUntilReady(const ArrayView& view, culaunch::Driver& driver, CUstream stream) {
  PyObject* ready = PyDict_GetItemString(view.owner.get(), "stream");
  if (ready == nullptr || ready == Py_None) return true;
  auto* ready_on = static_cast<CUstream>(PyLong_AsVoidPtr(ready));
  if (PyErr_Occurred() != nullptr) return false;
  if (ready_on == stream || (ready_on == CU_STREAM_LEGACY && stream == nullptr)) return true;
  CUresult code;
  {
    const ReleaseGil released;
    const culaunch::DeviceGuard guard(driver, view.device.device_id);
    code = guard.code() == CUDA_SUCCESS ? driver.cuStreamSynchronize(ready_on) : guard.code();
  }
  return Guarded<bool>(nullptr, false, [&] {
    driver.Check(code, "waiting for the stream in an array's __cuda_array_interface__");
    return true;
  });
}

bool FinishHostInterface(ArrayView* view) {
  if (!view->owner) return false;
  view->device = {culaunch::kDLCPU, 0};
  view->extent = ExtentOfInterface(view->owner.get(), view->data);
  return true;
}

// An interned attribute name: looking an attribute up by it makes no string.
PyObject* Name(const char* text) { return PyUnicode_InternFromString(text); }

}  // namespace

Extent ExtentOf(const DLTensor& tensor) {
  const int64_t item = (int64_t{tensor.dtype.bits} * tensor.dtype.lanes + 7) / 8;
  int64_t before = 0;
  int64_t after = 0;
  int64_t dense = 1;
  char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    const int64_t stride = tensor.strides != nullptr ? tensor.strides[i] : dense;
    if (tensor.shape[i] == 0) return {data, 0};
    dense *= tensor.shape[i];
    (stride < 0 ? before : after) += (tensor.shape[i] - 1) * stride;
  }
  return {data + before * item, static_cast<size_t>((after - before + 1) * item)};
}

bool ReadArrayDevice(PyObject* array, const TypeEntry& entry, culaunch::Driver& driver,
                     DLDevice* device) {
  if (entry.has_dlpack) {
    const Ref pair(PyObject_CallMethod(array, "__dlpack_device__", nullptr));
    if (pair && !PyTuple_Check(pair.get())) {
      PyErr_Format(PyExc_TypeError, "__dlpack_device__ must give (type, id) (got %R)", pair.get());
      return false;
    }
    return pair && PyArg_ParseTuple(pair.get(), "ii;__dlpack_device__ must give (type, id)",
                                    &device->device_type, &device->device_id) != 0;
  }
  if (entry.has_cuda_interface) {
    ArrayView view;
    if (!ReadCudaInterface(array, driver, &view)) return false;
    *device = view.device;
    return true;
  }
  *device = {culaunch::kDLCPU, 0};
  return true;
}

bool ReadArray(PyObject* array, const TypeEntry& entry, culaunch::Driver& driver, CUstream stream,
               ArrayView* view, DLTensor* tensor) {
  DLDevice device = {0, 0};
  if (entry.has_dlpack) {
    if (!ReadArrayDevice(array, entry, driver, &device)) return false;
    if (ReadDlpack(array, entry, device, stream, view, tensor)) return true;
    // Some element types are not DLPack's, and NumPy before 2.1 exports no read-only array: the
    // array interface serves those.
    const bool is_host = device.device_type == culaunch::kDLCPU;
    if (!entry.has_cuda_interface && !(is_host && entry.has_interface)) return false;
    if (PyErr_ExceptionMatches(PyExc_BufferError) == 0) return false;
    PyErr_Clear();
    if (is_host) {
      view->owner = Interface(array, "__array_interface__", view);
      return FinishHostInterface(view);
    }
  }
  if (entry.has_cuda_interface) {
    return ReadCudaInterface(array, driver, view, entry.has_dlpack ? &device : nullptr) &&
           WaitUntilReady(*view, driver, stream);
  }
  view->owner = Interface(array, "__array_interface__", view);
  return FinishHostInterface(view);
}

// cupy.ndarray's own attributes, which cost a tenth of its __dlpack__: data.ptr, data.device_id,
// dtype.num. CuPy's arrays are in order with CuPy's current stream, which the launch uses.
bool ReadCupy(PyObject* array, ArrayView* view) {
  static PyObject* const data_name = Name("data");
  static PyObject* const ptr_name = Name("ptr");
  static PyObject* const device_name = Name("device_id");
  static PyObject* const dtype_name = Name("dtype");
  static PyObject* const number_name = Name("num");
  const Ref data(PyObject_GetAttr(array, data_name));
  if (!data) return false;
  const Ref address(PyObject_GetAttr(data.get(), ptr_name));
  const Ref ordinal(PyObject_GetAttr(data.get(), device_name));
  const Ref dtype(PyObject_GetAttr(array, dtype_name));
  if (!address || !ordinal || !dtype) return false;
  const Ref number(PyObject_GetAttr(dtype.get(), number_name));
  if (!number) return false;
  view->data = PyLong_AsVoidPtr(address.get());
  view->device = {culaunch::kDLCUDA, static_cast<int32_t>(PyLong_AsLong(ordinal.get()))};
  // NumPy's type numbers (ndarraytypes.h, NPY_TYPES), up to the complex types.
  static constexpr DLDataType types[] = {
      {kDLBool, 8, 1},   {kDLInt, 8, 1},  {kDLUInt, 8, 1},     {kDLInt, 16, 1},
      {kDLUInt, 16, 1},  {kDLInt, 32, 1}, {kDLUInt, 32, 1},    {kDLInt, 64, 1},
      {kDLUInt, 64, 1},  {kDLInt, 64, 1}, {kDLUInt, 64, 1},    {kDLFloat, 32, 1},
      {kDLFloat, 64, 1}, {0, 0, 0},       {kDLComplex, 64, 1}, {kDLComplex, 128, 1}};
  const long index = PyLong_AsLong(number.get());
  constexpr long kFloat16 = 23;
  if (index == kFloat16) {
    view->dtype = {kDLFloat, 16, 1};
  } else if (index >= 0 && index < static_cast<long>(sizeof types / sizeof types[0])) {
    view->dtype = types[index];
  }
  return PyErr_Occurred() == nullptr;
}

bool ArrayStream(const TypeEntry& entry, CUstream* stream) {
  *stream = nullptr;
  if (entry.kind != ArgumentKind::kCupy) return true;
  if (entry.find_stream == nullptr) {
    PyErr_SetString(PyExc_ImportError, "cupy.cuda.get_current_stream was not found");
    return false;
  }
  const Ref current(PyObject_CallObject(entry.find_stream, nullptr));
  if (!current) return false;
  static PyObject* const ptr_name = Name("ptr");
  const Ref handle(PyObject_GetAttr(current.get(), ptr_name));
  if (!handle) return false;
  *stream = static_cast<CUstream>(PyLong_AsVoidPtr(handle.get()));
  return PyErr_Occurred() == nullptr;
}

PyObject* ArrayInfo(PyObject*, PyObject* args) {
  PyObject* driver_object = nullptr;
  PyObject* array = nullptr;
  if (!PyArg_ParseTuple(args, "OO:array_info", &driver_object, &array)) return nullptr;
  culaunch::Driver* driver = DriverOf(driver_object);
  if (driver == nullptr) return nullptr;
  TypeEntry scratch;
  const TypeEntry* entry = LookUpType(Py_TYPE(array), &scratch);
  if (entry == nullptr) return nullptr;
  DLTensor tensor = {};
  ArrayView view;
  if (entry->kind == ArgumentKind::kExchange) {
    const TensorRead read = ReadTensor(entry->api, array, &tensor);
    if (read == TensorRead::kRefused) RaiseRefused("the array", array);
    if (read != TensorRead::kDone) return nullptr;
  } else if (entry->has_dlpack) {
    DLDevice device;
    if (!ReadArrayDevice(array, *entry, *driver, &device) ||
        !ReadDlpack(array, *entry, device, nullptr, &view, &tensor)) {
      return nullptr;
    }
  } else {
    PyErr_Format(PyExc_TypeError, "an array must have __dlpack__ (got %R)",
                 reinterpret_cast<PyObject*>(Py_TYPE(array)));
    return nullptr;
  }
  const Ref shape(PyTuple_New(tensor.ndim));
  const Ref strides(PyTuple_New(tensor.ndim));
  if (!shape || !strides) return nullptr;
  int64_t dense = 1;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    const int64_t stride = tensor.strides != nullptr ? tensor.strides[i] : dense;
    PyTuple_SetItem(shape.get(), i, PyLong_FromLongLong(tensor.shape[i]));
    PyTuple_SetItem(strides.get(), i, PyLong_FromLongLong(stride));
    dense *= tensor.shape[i];
  }
  char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  return Py_BuildValue("NOOii(ii)", PyLong_FromVoidPtr(data), shape.get(), strides.get(),
                       tensor.dtype.code, tensor.dtype.bits, tensor.device.device_type,
                       tensor.device.device_id);
}

PyObject* ArrayStreamOf(PyObject*, PyObject* args) {
  PyObject* driver_object = nullptr;
  PyObject* array = nullptr;
  if (!PyArg_ParseTuple(args, "OO:array_stream", &driver_object, &array)) return nullptr;
  culaunch::Driver* driver = DriverOf(driver_object);
  TypeEntry scratch;
  const TypeEntry* entry = driver != nullptr ? LookUpObject(array, &scratch) : nullptr;
  if (entry == nullptr) return nullptr;
  DLDevice device = {0, 0};
  void* stream = nullptr;
  if (entry->kind == ArgumentKind::kExchange) {
    DLTensor tensor = {};
    const TensorRead read = ReadTensor(entry->api, array, &tensor);
    if (read == TensorRead::kRefused) RaiseRefused("the array", array);
    if (read != TensorRead::kDone) return nullptr;
    device = tensor.device;
    if (device.device_type != culaunch::kDLCPU &&
        entry->api->current_work_stream(device.device_type, device.device_id, &stream) != 0) {
      return nullptr;
    }
  } else if (entry->kind == ArgumentKind::kCupy || entry->kind == ArgumentKind::kArray) {
    ArrayView view;
    CUstream current = nullptr;
    const bool is_cupy = entry->kind == ArgumentKind::kCupy;
    if (!(is_cupy ? ReadCupy(array, &view) : ReadArrayDevice(array, *entry, *driver, &device)) ||
        !ArrayStream(*entry, &current)) {
      return nullptr;
    }
    if (is_cupy) device = view.device;
    stream = current;
  } else {
    Py_RETURN_NONE;
  }
  if (device.device_type != driver->device_types().front()) Py_RETURN_NONE;
  return Py_BuildValue("Ni", PyLong_FromVoidPtr(stream), device.device_id);
}
