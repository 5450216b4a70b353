#include "arguments/views/array_interface.h"

#include <culaunch/guard.h>

#include "driver/errors.h"

namespace {

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
      return {kDLInt, bits, 1};
    case 'u':
      return {kDLUInt, bits, 1};
    case 'f':
      return {kDLFloat, bits, 1};
    case 'c':
      return {kDLComplex, bits, 1};
    case 'b':
      return {kDLBool, bits, 1};
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
  // For the type U, the number counts characters of four bytes. For all others, it counts bytes.
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
    PyErr_Format(PyExc_ValueError, "the array is not in the native byte order (got %R): convert it",
                 typestr);
    return Ref();
  }
  PyErr_Clear();  // an empty typestr has no first character
  view->dtype = TypeOfTypestr(typestr);
  return interface;
}

}  // namespace

// Version 3 of the interface (Numba's documentation).
bool ReadCudaInterface(PyObject* array, culaunch::Driver& driver, ArrayView* view,
                       const DLDevice* known) {
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

bool ReadHostInterface(PyObject* array, ArrayView* view) {
  view->owner = Interface(array, "__array_interface__", view);
  if (!view->owner) return false;
  view->device = {culaunch::kDLCPU, 0};
  view->extent = ExtentOfInterface(view->owner.get(), view->data);
  return true;
}
