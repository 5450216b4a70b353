// _core.Launcher: a kernel with its launch configuration fixed. Calling it is the hot path.
#pragma once

#include <culaunch/launch_config.h>

#include "launch/kernel_object.h"
#include "python/python.h"

// Make a launcher for kernel[grid, block, shared_memory, stream].
PyObject* LauncherFromKey(KernelObject* kernel, PyObject* key);

// Make a launcher for kernel.configure(grid=, block=, ...).
PyObject* LauncherFromKeywords(KernelObject* kernel, PyObject* args, PyObject* keywords);

// The kernel of a launcher, borrowed.
KernelObject* KernelOfLauncher(PyObject* launcher);

int AddLauncherType(PyObject* module);
