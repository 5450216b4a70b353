// The driver in use, without a call of Python as long as nothing has changed that Python's choice
// depends on.
#pragma once

#include <culaunch/driver.h>

#include "python/python.h"

// Null with a Python error set.
culaunch::Driver* CurrentDriver();

// current_driver() -> Driver
PyObject* CurrentDriverObject(PyObject* self, PyObject* none);

// note_driver(driver, ((dict, key, value), ...)): the driver is the one in use while each dict has
// this very object for the key; None: while it has none.
PyObject* NoteDriver(PyObject* self, PyObject* args);
