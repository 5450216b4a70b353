// _core.DeviceArray: a contiguous array in the memory of a device, with the DLPack C exchange API.
#pragma once

#include "python.h"

int AddDeviceArrayType(PyObject* module);
