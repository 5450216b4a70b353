// Why the driver refused a launch, as a Python error.
#pragma once

#include <culaunch/kernel.h>

#include "python/python.h"

// Set a LaunchError for `code`. The ordinal is the device's.
CULAUNCH_RARE void RaiseLaunchFailure(culaunch::KernelState& kernel, const CUlaunchConfig& config,
                                      int ordinal, CUresult code);
