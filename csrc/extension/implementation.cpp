// The functions that the C++ header declares and that a launch may run, compiled once for the
// extension.
#include <culaunch/impl/graphs.h>
#include <culaunch/impl/guard.h>
#include <culaunch/impl/kernel_on_devices.h>
#include <culaunch/impl/kernel_state.h>
#include <culaunch/impl/tensor_notes.h>
