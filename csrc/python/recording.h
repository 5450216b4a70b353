// Recording of bodies. While any thread traces a function, each launch first asks Python whether
// its own thread records.
#pragma once

#include <atomic>

#include "python/python.h"

extern std::atomic<int> g_recordings;

// One load on the paths that launch.
inline bool IsRecording() { return g_recordings.load(std::memory_order_relaxed) != 0; }

// Ask the recorder. False if this thread records nothing; the call then continues. Otherwise
// `result` is the call's result, or null with a Python error set. `how`: "call", "getitem" or
// "configure".
bool RecordCall(PyObject* object, const char* how, PyObject* const* args, size_t count,
                PyObject* keyword_names, Ref* result);
bool Record(PyObject* object, const char* how, PyObject* args, PyObject* keywords, Ref* result);

// count_bodies(change): count the bodies that run in Python. While there are any, launches ask the
// recorder.
PyObject* CountBodies(PyObject* self, PyObject* args);

// around_collection(phase, info): for gc.callbacks. Finalizers that the collector runs do not
// belong to the body of the thread.
PyObject* AroundCollection(PyObject* self, PyObject* args);
