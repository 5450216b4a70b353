// Recording of bodies: while any thread traces a function, each launch first asks Python whether
// its own thread records.
#pragma once

#include <atomic>

#include "python/python.h"

extern std::atomic<int> g_recordings;

// One load on the paths that launch.
inline bool IsRecording() { return g_recordings.load(std::memory_order_relaxed) != 0; }

// Ask the recorder. False where this thread records nothing, and the call goes on; else `result` is
// what the call gives, or null with a Python error set. `how`: "call", "getitem" or "configure".
bool RecordCall(PyObject* object, const char* how, PyObject* const* args, size_t count,
                PyObject* keyword_names, Ref* result);
bool Record(PyObject* object, const char* how, PyObject* args, PyObject* keywords, Ref* result);

// count_bodies(change): how many bodies run in Python; while there are any, what launches asks.
PyObject* CountBodies(PyObject* self, PyObject* args);
