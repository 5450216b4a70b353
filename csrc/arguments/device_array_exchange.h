// How libraries get DeviceArrays as their outputs: two functions of DLPack's exchange API.
#pragma once

#include "formats/dlpack.h"

// A new array like the prototype, for a library that may not hold the GIL.
int AllocateDeviceArray(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                        void (*set_error)(void*, const char* kind, const char* message));

// A DeviceArray over a library's tensor, which stays the caller's after a failure.
int AdoptDeviceArray(DLManagedTensorVersioned* tensor, void** object);
