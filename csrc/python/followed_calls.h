// Calls of Python functions while a body runs. Each frame runs code that asks the body for `is`.
#pragma once

#include "python/python.h"

// open_frames(get, set, run, number, read, write): the addresses of CPython's functions that set
// the evaluation of frames (PEP 523) and attach data to code. Returns whether frames have the
// expected layout. Otherwise no call is followed.
PyObject* OpenFrames(PyObject* self, PyObject* args);

// follow_calls(on): follow the calls of this thread, or stop. Returns whether they were followed
// before.
PyObject* FollowCalls(PyObject* self, PyObject* on);
