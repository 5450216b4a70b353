// The driver in use. Python is called only if something has changed that its choice depends on.
#pragma once

#include <culaunch/driver.h>

#include "python/python.h"

// Null with a Python error set.
culaunch::Driver* CurrentDriver();

// current_driver() -> Driver
PyObject* CurrentDriverObject(PyObject* self, PyObject* none);

// note_driver(driver, ((dict, key, value), ...)): the driver stays the one in use while each dict
// has exactly this object for the key. A value None means that the dict lacks the key.
PyObject* NoteDriver(PyObject* self, PyObject* args);
