// A CUDA driver that runs nothing: sm_90 devices, memory of the host's, and launches that are
// written down or only counted. It is built in two ways.
//
// FAKE_DRIVER_LOG=1, for tests: two devices (one, where FAKE_DRIVER_DEVICES is 1) whose handles are
// no ordinals, kernels as images have them (PTX, cubin, fatbin), launches checked as a driver
// checks them. What happens is a line of the log; where the environment variable
// FAKE_DRIVER_LOG_FILE names a file, it is appended there as well.
//
//   retain DEVICE                     a primary context
//   load KERNEL... [jitN=V] [optionN=V] [(relaxed)]  an image; in the relaxed mode of capture
//   find KERNEL                       a kernel of an image is asked for
//   set KERNEL attribute=N value=N device=N
//   resident KERNEL device=N          a kernel is loaded on a device
//   launch KERNEL device=N grid=X,Y,Z block=X,Y,Z shared=N stream=own|default
//       [OPTION=X,Y,Z] [OPTION=N] [attributeN=HEX] args HEX...  one line; the attributes by the
//       names of culaunch/launch_options.h; the first bytes of any other attribute; the bytes of
//       each argument as the kernel has it
//                                     A kernel node of a graph that runs is such a line too.
//   synchronize                       a context
//   unload                            an image
//   release DEVICE                    a primary context
//   call FUNCTION                     any function of the table, where FAKE_DRIVER_CALLS is set
//
// FAKE_DRIVER_LOG=0, for benchmarks: one device, kernels by declaration, launches counted and
// dropped; a call costs as little as it can. It stands for libcuda.so.1 to other libraries, too.
//
// Whatever is not implemented resolves to a function that returns CUDA_ERROR_NOT_SUPPORTED, so that
// nothing is silently faked.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

extern "C" {
// Declare a kernel and the sizes of its parameters; offsets follow from natural alignment. Every
// image that is loaded afterwards has it. 0, or -1 if there are too many or the name is too long.
FAKE_EXPORT int fake_driver_declare(const char* name, int count, const size_t* sizes);

// How often something was launched since the library was loaded.
FAKE_EXPORT uint64_t fake_driver_launches();

// With the log: what was written since the last fake_driver_clear; and how often a function of the
// table was called since then, or all of them together where the name is null.
FAKE_EXPORT const char* fake_driver_log();
FAKE_EXPORT uint64_t fake_driver_calls(const char* function);
FAKE_EXPORT void fake_driver_clear();

// With the log: let the next call of a function of the table fail.
FAKE_EXPORT void fake_driver_fail(const char* function, int code);

// With the log: a context of a device that is not the primary one. CUcontext, as void*.
FAKE_EXPORT void* fake_driver_own_context(int ordinal);

// The flags that cuGetProcAddress was last asked with.
FAKE_EXPORT unsigned long long fake_driver_address_flags();

// culaunch reads it: which DLPack device types are this driver's memory. It is the host's, and
// tests pass both kinds of array.
FAKE_EXPORT extern const int culaunch_device_types[];
}
