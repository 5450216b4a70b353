// What of torch the native dispatch of operators calls, found by name in the libraries that the
// process has loaded: torch's stable C interface, and two functions of its Python half. Nothing of
// torch is needed to build this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "python/python.h"

namespace torch_operators {

using Value = uint64_t;  // torch's StableIValue: a number's bits, or a handle
using Kernel = void (*)(Value* stack, uint64_t arguments, uint64_t results);

struct Interface {
  // Of the stable interface. All but the last return 0 for success.
  int32_t (*init_impl)(const char* space, const char* key, const char* file, uint32_t line,
                       void** library);
  int32_t (*impl)(void* library, const char* name, Kernel kernel, uint64_t version);
  int32_t (*new_tensor)(const void* tensor, void** handle);
  int32_t (*delete_tensor)(void* handle);
  int32_t (*list_size)(void* list, size_t* size);
  int32_t (*list_item)(void* list, size_t index, Value* item);
  int32_t (*delete_list)(void* list);
  int32_t (*string_data)(void* string, const char** data);
  int32_t (*string_size)(void* string, size_t* size);
  int32_t (*delete_string)(void* string);
  // Of the Python half: a new reference to the Python object of a tensor (THPVariable_Wrap), and
  // THPUtils_unpackLongs, which throws torch's own exception where a Python error is set: it is
  // called for that alone.
  PyObject* (*wrap)(const void* tensor);
  std::vector<int64_t> (*unpack_longs)(PyObject* numbers);

  size_t tensor;          // offset of the tensor in its Python object
  PyObject* tensor_type;  // torch.Tensor
  PyObject* dtypes;       // torch's number of an element type -> its dtype
};

// What was opened; null: nothing was.
extern const Interface* g_interface;

// open_torch(libraries, tensor, dtypes): find all of it. Returns None, or what is missing as a str.
// tensor: any plain one. dtypes: (name in the interface, dtype), ....
PyObject* OpenTorch(PyObject* module, PyObject* args);

}  // namespace torch_operators
