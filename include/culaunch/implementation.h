// The functions that culaunch.h, arguments.h and tvm_ffi.h declare and a launch does not run.
// Include this in one source file of a program or a shared library with CULAUNCH_HEADER_ONLY=0. If
// two files include it, the program only takes longer to compile.
#pragma once

#include "impl/arguments.h"
#include "impl/driver.h"
#include "impl/embed.h"
#include "impl/error.h"
#include "impl/graphs.h"
#include "impl/guard.h"
#include "impl/kernel.h"
#include "impl/kernel_on_devices.h"
#include "impl/kernel_state.h"
#include "impl/module.h"
#include "impl/tensor_notes.h"
#include "impl/tensor_text.h"
