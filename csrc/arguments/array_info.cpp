#include "arguments/array_info.h"

#include "arguments/operands.h"
#include "arguments/protocols/arrays.h"
#include "arguments/protocols/cupy.h"
#include "arguments/protocols/dlpack_protocol.h"
#include "arguments/torch/tensor.h"
#include "driver/driver_object.h"
#include "driver/errors.h"

PyObject* ArrayInfo(PyObject*, PyObject* args) {
  PyObject* driver_object = nullptr;
  PyObject* array = nullptr;
  if (!PyArg_ParseTuple(args, "OO:array_info", &driver_object, &array)) return nullptr;
  culaunch::Driver* driver = DriverOf(driver_object);
  if (driver == nullptr) return nullptr;
  TypeEntry scratch;
  const TypeEntry* entry = LookUpObject(array, &scratch);
  if (entry == nullptr) return nullptr;
  DLTensor tensor = {};
  ArrayView view;
  operands::Operand operand;  // keeps the shape and the strides
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
  } else if (entry->kind == ArgumentKind::kArray || entry->kind == ArgumentKind::kCupy) {
    operands::Place place;
    place.driver = driver;
    place.types = operands::kAllTypes;
    place.checks_gradient = false;
    if (operands::ReadOperand(array, "the array", &place, &operand) !=
        operands::ReadResult::kDone) {
      return nullptr;
    }
    tensor.data = operand.data;
    tensor.device = operand.device;
    tensor.ndim = operand.ndim;
    tensor.dtype = operands::TypeOf(operand.number);
    tensor.shape = const_cast<int64_t*>(operand.shape);
    tensor.strides = const_cast<int64_t*>(operand.strides);
  } else {
    PyErr_Format(PyExc_TypeError,
                 "an array must have __dlpack__ or __cuda_array_interface__ (got %S)",
                 Spelled(array).get());
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

PyObject* ReadsInPlace(PyObject*, PyObject* array) {
  TypeEntry scratch;
  const TypeEntry* entry = LookUpType(Py_TYPE(array), &scratch);
  if (entry == nullptr) return nullptr;
  DLTensor tensor = {};
  return PyBool_FromLong(entry->kind == ArgumentKind::kExchange &&
                         entry->api == g_torch_layout.api &&
                         ReadInPlace(g_torch_layout, array, &tensor));
}
