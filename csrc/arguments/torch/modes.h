// How torch treats the operations of a thread: its dispatch keys, as torch stores them.
#pragma once

#include <cstdint>

#include "python/python.h"

// torch's PODLocalDispatchKeySet: zero in the initial state of a thread.
struct TorchKeys {
  uint64_t included;
  uint64_t excluded;
};

// This thread's; null if they are not known.
const TorchKeys* TorchKeysOfThread();

// Whether a mode, a trace or a transformation of torch intercepts the operations of this thread. An
// operation that it does not see is missing from its trace, and memory allocated meanwhile belongs
// to it.
bool IsTorchWatching();

// watch_modes(library, keys): find the dispatch keys of threads in torch's loaded library. `keys`
// are the keys of modes that intercept operations.
PyObject* WatchModes(PyObject* module, PyObject* args);

// thread_keys(): the two words of this thread, or None.
PyObject* ThreadKeys(PyObject* module, PyObject* none);
