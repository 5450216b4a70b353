// If torch's dispatcher would only call the function, an operator calls it directly.
#pragma once

#include "python/python.h"

namespace torch_operators {

// open_plain_calls(libraries, tensor, types, keys, inference): find the state that shows whether
// torch does nothing special in a thread. `tensor` is a plain one. `types` are the Python types of
// plain tensors, and `keys` the dispatch keys that they may have. `inference` is the result of
// thread_keys() in torch.inference_mode(). Returns None, or the name of the missing part as a str.
PyObject* OpenPlainCalls(PyObject* module, PyObject* args);

// Whether a call from this thread goes straight to an implementation: there is no mode,
// transformation, trace or profiler.
bool IsPlainThread();

// The same for a call that went through the dispatcher, so profilers and Python modes have seen it.
bool HasPlainKeys();

// Whether gradients are recorded in this thread.
bool IsGradientRecorded();

enum class Plain : uint8_t {
  kNo,
  kYes,
  kMayHaveGradient,  // plain, but autograd tracks it
};

// Whether an object is a tensor that consists only of its memory.
Plain IsPlainTensor(PyObject* object);

}  // namespace torch_operators
