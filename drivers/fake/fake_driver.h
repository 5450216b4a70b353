// A CUDA driver that runs nothing. It has sm_90 devices and host memory, and logs or only counts
// launches. It is built in two ways.
//
// FAKE_DRIVER_LOG=1, for tests: two devices (or FAKE_DRIVER_DEVICES of them) whose handles are not
// ordinals. It reads the kernels of images (PTX, cubin, fatbin) and checks launches as a driver
// does. Each event is a line of the log, and of the file that FAKE_DRIVER_LOG_FILE names:
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
// FAKE_DRIVER_LOG=0, for benchmarks: one device, and kernels by declaration. Launches are counted
// and dropped, at the lowest possible cost. Other libraries can load it as libcuda.so.1.
//
// All other functions return CUDA_ERROR_NOT_SUPPORTED: nothing is silently faked.
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

// With the log: the lines since the last fake_driver_clear, and the number of calls of a function
// since then. A null name counts the calls of all functions.
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
