// The driver's facts about a kernel on a device: methods of _core.Kernel.
#pragma once

#include "python/python.h"

// _attribute(attribute, ordinal)
PyObject* KernelAttribute(PyObject* self, PyObject* args);

// _make_ready(ordinal): prepare launches on a device
PyObject* KernelMakeReady(PyObject* self, PyObject* args);

// _max_dynamic_shared_memory(ordinal)
PyObject* KernelMaxDynamicSharedMemory(PyObject* self, PyObject* args);

// _occupancy(ordinal, block, shared_memory, cluster) -> the fields of Occupancy
PyObject* KernelOccupancy(PyObject* self, PyObject* args);
