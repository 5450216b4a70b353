// DLPack's C exchange API of DeviceArrays: how libraries read them without Python, and get them as
// their outputs.
#pragma once

#include "formats/dlpack.h"
#include "python/python.h"

// The API that the type carries.
const DLPackExchangeAPI* DeviceArrayExchange();

// Give it to the type, which must have been added.
int AddDeviceArrayExchange();
