// _core.XlaArray: memory of XLA during a call, as an array with the DLPack C exchange API. Memory
// allocated like one belongs to the call that runs on this thread.
#pragma once

#include "formats/dlpack.h"
#include "python/python.h"

namespace xla_calls {

int AddArrayType(PyObject* module);

bool IsArray(PyObject* object);

// An array of C order over memory. Null with a Python error set.
Ref MakeArray(void* data, DLDevice device, DLDataType dtype, int32_t ndim, const int64_t* shape);

// A view of an array, which must live as long; its data is null after the end of its call.
DLTensor TensorOf(PyObject* array);

// Its memory is no longer there: every use is an error from now on.
void CloseArray(PyObject* array);

}  // namespace xla_calls
