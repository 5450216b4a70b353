#include "arguments/protocols/cupy.h"

namespace {

// An interned attribute name saves creating a string at each lookup.
PyObject* Name(const char* text) { return PyUnicode_InternFromString(text); }

}  // namespace

// cupy.ndarray's own attributes, which cost a tenth of its __dlpack__: data.ptr, data.device_id,
// dtype.num. Work on CuPy's arrays is ordered by CuPy's current stream, which the launch uses.
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

bool CurrentCupyStream(const TypeEntry& entry, CUstream* stream) {
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
