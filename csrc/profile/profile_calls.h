// Profiles as Python takes them.
#pragma once

#include "python/python.h"

namespace profile {

// start_profile(driver, limit) -> where it begins
PyObject* StartProfile(PyObject* self, PyObject* args);

// stop_profile(driver, where it begins) -> kernels, launches, how many were left out. Each is a
// tuple of the fields of LaunchedKernel and LaunchRecord.
PyObject* StopProfile(PyObject* self, PyObject* args);

// start_device_kernels() -> (beginning, dropped, time), see DeviceKernels.
PyObject* StartDeviceKernels(PyObject* self, PyObject* unused);

// stop_device_kernels(that) -> kernels, dropped. Each is a tuple of the fields of DeviceKernel.
PyObject* StopDeviceKernels(PyObject* self, PyObject* mark);

}  // namespace profile
