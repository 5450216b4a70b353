// DLPack's C exchange API of DeviceArrays. Libraries read them without Python, and allocate them as
// their outputs.
#pragma once

#include "formats/dlpack.h"
#include "python/python.h"

// The API that the type carries.
const DLPackExchangeAPI* DeviceArrayExchange();

// Give it to the type, which must have been added.
int AddDeviceArrayExchange();

// current_stream(device), set_current_stream(device, handle): the stream that calls with
// DeviceArrays use on this thread by default.
PyObject* GetCurrentStream(PyObject* self, PyObject* args);
PyObject* SetCurrentStream(PyObject* self, PyObject* args);
