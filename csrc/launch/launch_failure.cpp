#include "launch/launch_failure.h"

#include <culaunch/demangle.h>
#include <culaunch/explain.h>

#include "driver/errors.h"

void RaiseLaunchFailure(culaunch::KernelState& kernel, const CUlaunchConfig& config, int ordinal,
                        CUresult code) {
  try {
    RaiseError(culaunch::ExplainLaunch(kernel.driver(), kernel.handle(),
                                       culaunch::Demangle(kernel.name()), config, ordinal, code),
               "LaunchError");
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}
