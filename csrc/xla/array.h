// _core.XlaArray: memory of XLA during a call, as an array with the DLPack C exchange API. Memory
// allocated like this array belongs to the call that runs on this thread.
#pragma once

#include "formats/dlpack.h"
#include "python/python.h"

namespace xla_calls {

int AddArrayType(PyObject* module);

bool IsArray(PyObject* object);

// A C-contiguous array over memory. Null with a Python error set.
Ref MakeArray(void* data, DLDevice device, DLDataType dtype, int32_t ndim, const int64_t* shape);

// A view of an array. The array must outlive it. Its data is null after the end of its call.
DLTensor TensorOf(PyObject* array);

// Its memory is freed, and every later use is an error.
void CloseArray(PyObject* array);

}  // namespace xla_calls
