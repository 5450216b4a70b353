// _core.Driver: a culaunch::Driver as a Python object.
#pragma once

#include <culaunch/driver.h>

#include "python/python.h"

struct DriverObject {
  PyObject_HEAD culaunch::Driver* driver;  // never freed: modules and arrays point to it
};

extern PyTypeObject* g_driver_type;

int AddDriverType(PyObject* module);

// The Driver in an argument; null with a TypeError set.
culaunch::Driver* DriverOf(PyObject* object);
