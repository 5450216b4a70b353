/* The raw twin of the benchmark: the same launches, in C, with nothing around them.
 *
 * Every function of the driver comes from one dlopen of the path given, as culaunch takes them.
 * The clock runs inside the loops, so what calls them (ctypes) is not measured.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* clang-format off */
#define FUNCTIONS(F)                                                        \
  F(cuInit) F(cuDeviceGetName) F(cuDriverGetVersion) F(cuDeviceGetAttribute) \
  F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent) F(cuCtxSynchronize)        \
  F(cuMemAlloc) F(cuMemcpyHtoD) F(cuMemcpyDtoH)                             \
  F(cuLibraryLoadData) F(cuLibraryGetKernel) F(cuKernelGetFunction)         \
  F(cuLaunchKernelEx)
/* clang-format on */

#define DECLARE(name) __typeof__(&name) name##_;
static struct {
  FUNCTIONS(DECLARE)
} driver;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Resolve the driver and make device 0's primary context current. 0, or the driver's code. */
int twin_open(const char* path) {
  void* library = dlopen(path, RTLD_NOW);
  if (!library) return -1;
  CUresult (*resolve)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*) =
      (__typeof__(resolve))dlsym(library, "cuGetProcAddress_v2");
  if (!resolve) return -2;
#define RESOLVE(name) \
  if (resolve(#name, (void**)&driver.name##_, 12080, 0, NULL) || !driver.name##_) return -3;
  FUNCTIONS(RESOLVE)
  CUcontext context;
  CUresult code = driver.cuInit_(0);
  if (!code) code = driver.cuDevicePrimaryCtxRetain_(&context, 0);
  if (!code) code = driver.cuCtxSetCurrent_(context);
  return (int)code;
}

/* The device's name, its compute capability (major * 10 + minor) and the driver's version. */
int twin_device(char* name, int length, int* capability, int* version) {
  int major = 0, minor = 0;
  CUresult code = driver.cuDeviceGetName_(name, length, 0);
  if (!code) code = driver.cuDriverGetVersion_(version);
  if (!code)
    code = driver.cuDeviceGetAttribute_(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  if (!code)
    code = driver.cuDeviceGetAttribute_(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  *capability = major * 10 + minor;
  return (int)code;
}

int twin_synchronize(void) { return (int)driver.cuCtxSynchronize_(); }

uint64_t twin_allocate(size_t bytes) {
  CUdeviceptr pointer = 0;
  return driver.cuMemAlloc_(&pointer, bytes) ? 0 : (uint64_t)pointer;
}

int twin_write(uint64_t target, const void* source, size_t bytes) {
  return (int)driver.cuMemcpyHtoD_((CUdeviceptr)target, source, bytes);
}

int twin_read(void* target, uint64_t source, size_t bytes) {
  return (int)driver.cuMemcpyDtoH_(target, (CUdeviceptr)source, bytes);
}

int twin_load(const void* image, void** library) {
  return (int)driver.cuLibraryLoadData_((CUlibrary*)library, image, NULL, NULL, 0, NULL, NULL, 0);
}

int twin_function(void* library, const char* name, void** function) {
  CUkernel kernel;
  CUresult code = driver.cuLibraryGetKernel_(&kernel, (CUlibrary)library, name);
  return (int)(code ? code : driver.cuKernelGetFunction_((CUfunction*)function, kernel));
}

/* The context-free handle, which cuLaunchKernelEx takes as well. */
int twin_kernel(void* library, const char* name, void** kernel) {
  return (int)driver.cuLibraryGetKernel_((CUkernel*)kernel, (CUlibrary)library, name);
}

static CUlaunchConfig configure(unsigned grid, unsigned block, void* stream) {
  CUlaunchConfig config;
  memset(&config, 0, sizeof config);
  config.gridDimX = grid, config.gridDimY = 1, config.gridDimZ = 1;
  config.blockDimX = block, config.blockDimY = 1, config.blockDimZ = 1;
  config.hStream = (CUstream)stream;
  return config;
}

/* Launch count times; returns nanoseconds, or minus the driver's code. */
int64_t twin_launch(void* function, void** params, unsigned grid, unsigned block, void* stream,
                    int64_t count) {
  CUlaunchConfig config = configure(grid, block, stream);
  int64_t start = now();
  for (int64_t i = 0; i < count; ++i) {
    CUresult code = driver.cuLaunchKernelEx_(&config, (CUfunction)function, params, NULL);
    if (code) return -(int64_t)code;
  }
  return now() - start;
}

/* DLPackExchangeAPI.dltensor_from_py_object_no_sync, on each of the objects in turn. */
int64_t twin_exchange(int (*exchange)(void*, void*), void** objects, int64_t distinct,
                      int64_t count) {
  uint64_t tensor[32]; /* a DLTensor is 48 bytes */
  int64_t start = now();
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < distinct; ++j) {
      if (exchange(objects[j], tensor)) return -1;
      __asm__ volatile("" ::"r"(tensor) : "memory");
    }
  }
  return now() - start;
}

/* DLPackExchangeAPI.current_work_stream. */
int64_t twin_work_stream(int (*work_stream)(int, int32_t, void**), int type, int id,
                         int64_t count) {
  void* stream = NULL;
  int64_t start = now();
  for (int64_t i = 0; i < count; ++i) {
    if (work_stream(type, id, &stream)) return -1;
    __asm__ volatile("" ::"r"(&stream) : "memory");
  }
  return now() - start;
}

/* PyEval_SaveThread and PyEval_RestoreThread: the GIL released and taken again, nobody waiting. */
int64_t twin_gil(void* (*save)(void), void (*restore)(void*), int64_t count) {
  int64_t start = now();
  for (int64_t i = 0; i < count; ++i) restore(save());
  return now() - start;
}

/* What a launch from Python cannot do without: the exchange function of each tensor, the stream's
 * look-up (null: none) and the GIL released, around the launch of twin_launch. */
int64_t twin_least(void* function, void** params, unsigned grid, unsigned block, void* stream,
                   int (*exchange)(void*, void*), void** objects, int64_t tensors,
                   int (*work_stream)(int, int32_t, void**), void* (*save)(void),
                   void (*restore)(void*), int64_t count) {
  enum { kDLCUDA = 2 };
  uint64_t tensor[32];
  CUlaunchConfig config = configure(grid, block, stream);
  int64_t start = now();
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < tensors; ++j) {
      if (exchange(objects[j], tensor)) return -1;
      __asm__ volatile("" ::"r"(tensor) : "memory");
    }
    void* current = stream;
    if (work_stream && work_stream(kDLCUDA, 0, &current)) return -1;
    config.hStream = (CUstream)current;
    void* state = save();
    CUresult code = driver.cuLaunchKernelEx_(&config, (CUfunction)function, params, NULL);
    restore(state);
    if (code) return -(int64_t)code;
  }
  return now() - start;
}
