/* A CUDA driver that does nothing: build it as libcuda.so.1 and measure what callers cost.
 *
 * One device with the limits of an sm_90, one primary context, memory from malloc, launches that
 * are counted and dropped. Kernels exist by declaration: null_set_params(name, count, sizes) before
 * the image is loaded; every image then contains every declared kernel. Anything not implemented
 * resolves to a function that returns CUDA_ERROR_NOT_SUPPORTED, so that nothing is silently faked.
 */
#ifndef NULL_DRIVER_H_
#define NULL_DRIVER_H_

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#define NULL_EXPORT __attribute__((visibility("default")))

/* Declare a kernel and the sizes of its parameters; offsets follow from natural alignment.
 * 0, or -1 if there are too many or the name is too long. */
NULL_EXPORT int null_set_params(const char* name, int count, const size_t* sizes);

/* How often something was launched since the library was loaded. */
NULL_EXPORT uint64_t null_launch_count(void);

/* culaunch reads it: which DLPack device types are this driver's memory (CPU and CUDA). */
NULL_EXPORT extern const int culaunch_device_types[];

/* The calling thread's context: null, or the one primary context. */
extern _Thread_local CUcontext null_current_context;

#endif
