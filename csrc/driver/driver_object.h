// _core.Driver: a culaunch::Driver as a Python object.
#pragma once

#include <culaunch/driver.h>

#include "python/python.h"

struct DriverObject {
  PyObject_HEAD culaunch::Driver* driver;  // never freed: modules and arrays point at it
};

extern PyTypeObject* g_driver_type;

int AddDriverType(PyObject* module);

// The Driver of an argument, or null with TypeError set.
culaunch::Driver* DriverOf(PyObject* object);
