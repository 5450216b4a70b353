// _core.DeviceArray: a contiguous array in the memory of a device, with the DLPack C exchange API.
#pragma once

#include "formats/dlpack.h"
#include "python/python.h"

int AddDeviceArrayType(PyObject* module);

// The exchange API that the type carries: it allocates nothing.
const DLPackExchangeAPI* DeviceArrayExchange();

bool IsDeviceArray(PyObject* object);
