// Where torch's dispatcher would do nothing but call the function: then an operator calls it
// itself.
#pragma once

#include "python/python.h"

namespace torch_operators {

// open_plain_calls(libraries, tensor, types, keys, inference): find the state that shows whether
// torch does nothing special in a thread. `tensor` is a plain one. `types` are the Python types of
// plain tensors, and `keys` the dispatch keys that they may have. `inference` is the result of
// thread_keys() in torch.inference_mode(). Returns None, or the name of the missing part as a str.
PyObject* OpenPlainCalls(PyObject* module, PyObject* args);

// Whether a call from this thread goes straight to an implementation: no mode, no transformation,
// no trace, no profiler.
bool IsPlainThread();

// The same for a call that the dispatcher has looked at: profilers and modes of Python know of it.
bool HasPlainKeys();

// Whether gradients are recorded in this thread.
bool IsGradientRecorded();

enum class Plain : uint8_t {
  kNo,
  kYes,
  kMayHaveGradient,  // it is plain, but autograd knows of it
};

// Whether an object is a tensor with nothing about it but memory.
Plain IsPlainTensor(PyObject* object);

}  // namespace torch_operators
