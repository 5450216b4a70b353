// The part of torch that the native dispatch of operators calls: its stable C interface, and two
// functions of its Python half. They are looked up by name in the loaded libraries, so the build
// does not need torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "python/python.h"

namespace torch_operators {

using Value = uint64_t;  // torch's StableIValue: a number's bits, or a handle
using Kernel = void (*)(Value* stack, uint64_t arguments, uint64_t results);

struct Interface {
  // From the stable interface. All but the last return 0 for success.
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
  // From the Python half: THPVariable_Wrap returns a new reference to the Python object of a
  // tensor. THPUtils_unpackLongs is called only because it throws torch's own exception if a Python
  // error is set.
  PyObject* (*wrap)(const void* tensor);
  std::vector<int64_t> (*unpack_longs)(PyObject* numbers);

  size_t tensor;          // offset of the tensor in its Python object
  PyObject* tensor_type;  // torch.Tensor
  PyObject* dtypes;       // torch's number of an element type -> its dtype
};

// The opened interface; null before open_torch().
extern const Interface* g_interface;

// open_torch(libraries, tensor, dtypes): find all of it. Returns None, or the name of the missing
// part as a str. tensor: any plain tensor. dtypes: pairs (name in the interface, dtype).
PyObject* OpenTorch(PyObject* module, PyObject* args);

}  // namespace torch_operators
