/* A CUDA driver that does nothing: build it as libcuda.so.1 and measure what callers cost.
 *
 * One device with the limits of an sm_90, one primary context, memory from malloc, launches that
 * are counted and dropped. Kernels exist by declaration: null_set_params(name, count, sizes) before
 * the image is loaded; every image then contains every declared kernel. Anything not implemented
 * resolves to a function that returns CUDA_ERROR_NOT_SUPPORTED, so that nothing is silently faked.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_KERNELS 256
#define MAX_PARAMS 1024

typedef struct {
  char name[256];
  int count;
  size_t offsets[MAX_PARAMS];
  size_t sizes[MAX_PARAMS];
  int dynamic_shared;
} Kernel;

static Kernel kernels[MAX_KERNELS];
static unsigned kernel_count;
static uint64_t launches;                   /* not atomic: a lock prefix would be half of the cost */
static char primary_context, default_queue; /* only their addresses matter */
static _Thread_local CUcontext current;

/* culaunch reads it: which DLPack device types are this driver's memory (CPU and CUDA). */
EXPORT const int culaunch_device_types[] = {1, 2, -1};

/* Declare a kernel and the sizes of its parameters; offsets follow from natural alignment. */
EXPORT int null_set_params(const char *name, int count, const size_t *sizes) {
  unsigned index = 0;
  while (index < kernel_count && strcmp(kernels[index].name, name) != 0) ++index;
  if (index == MAX_KERNELS || count < 0 || count > MAX_PARAMS || strlen(name) > 255) return -1;
  if (index == kernel_count) ++kernel_count;
  Kernel *kernel = &kernels[index];
  snprintf(kernel->name, sizeof kernel->name, "%s", name);
  kernel->count = count;
  size_t offset = 0;
  for (int i = 0; i < count; ++i) {
    size_t size = sizes[i], align = size & (~size + 1);
    if (align == 0 || align > 8) align = align ? 8 : 1;
    offset = (offset + align - 1) / align * align;
    kernel->offsets[i] = offset;
    kernel->sizes[i] = size;
    offset += size;
  }
  return 0;
}

EXPORT uint64_t null_launch_count(void) { return launches; }

static CUresult not_supported(void) { return CUDA_ERROR_NOT_SUPPORTED; }

/* Start-up, devices ------------------------------------------------------------------------- */

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char **text) {
  *text = code == CUDA_SUCCESS               ? "CUDA_SUCCESS"
          : code == CUDA_ERROR_NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED"
          : code == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
          : code == CUDA_ERROR_NOT_FOUND     ? "CUDA_ERROR_NOT_FOUND"
                                             : "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult code, const char **text) {
  *text = code == CUDA_SUCCESS               ? "no error"
          : code == CUDA_ERROR_NOT_SUPPORTED ? "the null driver does not implement it"
          : code == CUDA_ERROR_INVALID_VALUE ? "invalid argument"
          : code == CUDA_ERROR_NOT_FOUND     ? "named symbol not found"
                                             : "unknown error";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = 0;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  (void)device;
  snprintf(name, (size_t)length, "null device (sm_90)");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  (void)device;
  memset(uuid, 0, sizeof *uuid);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
  (void)device;
  snprintf(id, (size_t)length, "0000:00:00.0");
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  (void)device;
  *bytes = (size_t)80 << 30;
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  (void)device;
  *major = 9, *minor = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 2147483647; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 232448; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 233472; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *value = 65536; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED: *value = 1; break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}

/* Contexts, streams, events ----------------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  (void)device;
  *context = (CUcontext)&primary_context;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return (void)device, CUDA_SUCCESS; }

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  (void)device;
  *flags = 0, *active = 1;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = current;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxSetCurrent(context); }

CUresult cuCtxPopCurrent(CUcontext *context) {
  if (context) *context = current; /* one context: what lay beneath is the same */
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
  *device = 0;
  return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
  (void)context;
  *id = 1;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) { return CUDA_SUCCESS; }

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  (void)stream;
  *context = (CUcontext)&primary_context;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device) {
  (void)stream;
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id) {
  *id = (unsigned long long)(uintptr_t)stream;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags) {
  (void)stream;
  *flags = CU_STREAM_NON_BLOCKING;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority) {
  (void)stream;
  *priority = 0;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  (void)flags;
  *stream = (CUstream)&default_queue;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  (void)priority;
  return cuStreamCreate(stream, flags);
}

CUresult cuStreamDestroy(CUstream stream) { return (void)stream, CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream stream) { return (void)stream, CUDA_SUCCESS; }
CUresult cuStreamQuery(CUstream stream) { return (void)stream, CUDA_SUCCESS; }

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  (void)stream;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

/* Memory ------------------------------------------------------------------------------------ */

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
  void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
  *pointer = (CUdeviceptr)(uintptr_t)memory;
  return memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree(CUdeviceptr pointer) {
  free((void *)(uintptr_t)pointer);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemAlloc(pointer, bytes);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  (void)stream;
  return cuMemFree(pointer);
}

CUresult cuMemcpyHtoD(CUdeviceptr target, const void *source, size_t bytes) {
  memcpy((void *)(uintptr_t)target, source, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void *target, CUdeviceptr source, size_t bytes) {
  memcpy(target, (const void *)(uintptr_t)source, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoD(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  return cuMemcpyHtoD(target, (const void *)(uintptr_t)source, bytes);
}

CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  return cuMemcpyDtoD(target, source, bytes);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr target, const void *source, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemcpyHtoD(target, source, bytes);
}

CUresult cuMemcpyDtoHAsync(void *target, CUdeviceptr source, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemcpyDtoH(target, source, bytes);
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemcpyDtoD(target, source, bytes);
}

CUresult cuMemsetD8(CUdeviceptr target, unsigned char value, size_t bytes) {
  memset((void *)(uintptr_t)target, value, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemsetD8(target, value, bytes);
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  (void)pointer;
  if (attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) return CUDA_ERROR_NOT_SUPPORTED;
  *(int *)value = 0;
  return CUDA_SUCCESS;
}

/* Modules and kernels: CUlibrary, CUkernel, CUmodule and CUfunction are the same objects ---- */

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values,
                           unsigned jit_count, CUlibraryOption *options, void **values,
                           unsigned count) {
  (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
  *library = (CUlibrary)kernels;
  return code ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryUnload(CUlibrary library) { return (void)library, CUDA_SUCCESS; }

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  *module = (CUmodule)library;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  (void)library;
  for (unsigned i = 0; i < kernel_count; ++i) {
    if (strcmp(kernels[i].name, name) != 0) continue;
    *kernel = (CUkernel)&kernels[i];
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
  (void)library;
  *count = kernel_count;
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned count, CUlibrary library) {
  (void)library;
  for (unsigned i = 0; i < count && i < kernel_count; ++i) out[i] = (CUkernel)&kernels[i];
  return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  *function = (CUfunction)kernel;
  return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel) {
  (void)kernel;
  *library = (CUlibrary)kernels;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel) {
  *name = ((Kernel *)kernel)->name;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function) {
  return cuKernelGetName(name, (CUkernel)function);
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t *offset, size_t *size) {
  const Kernel *kernel = (const Kernel *)handle;
  if (index >= (size_t)kernel->count) return CUDA_ERROR_INVALID_VALUE;
  if (offset) *offset = kernel->offsets[index];
  if (size) *size = kernel->sizes[index];
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
  return cuKernelGetParamInfo((CUkernel)function, index, offset, size);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 16; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 90; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = ((Kernel *)function)->dynamic_shared ? ((Kernel *)function)->dynamic_shared : 49152;
      break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value < 0 || value > 232448) return CUDA_ERROR_INVALID_VALUE;
    ((Kernel *)function)->dynamic_shared = value;
  }
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device) {
  (void)device;
  return cuFuncGetAttribute(value, attribute, (CUfunction)kernel);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device) {
  (void)device;
  return cuFuncSetAttribute((CUfunction)kernel, attribute, value);
}

CUresult cuFuncLoad(CUfunction function) { return (void)function, CUDA_SUCCESS; }

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function) {
  (void)function;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function) {
  (void)function;
  *module = (CUmodule)kernels;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return cuLibraryLoadData((CUlibrary *)module, image, NULL, NULL, 0, NULL, NULL, 0);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values) {
  (void)count, (void)options, (void)values;
  return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module) { return (void)module, CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  return cuLibraryGetKernel((CUkernel *)function, (CUlibrary)module, name);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t shared) {
  (void)function, (void)shared;
  *blocks = threads > 0 && threads <= 1024 ? 2048 / threads : 0;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                              int threads, size_t shared,
                                                              unsigned flags) {
  (void)flags;
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block, size_t shared,
                                          int limit) {
  (void)function, (void)shared_of_block, (void)shared;
  *grid = 264, *block = limit > 0 && limit < 1024 ? limit : 1024;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function, const CUlaunchConfig *config) {
  (void)function, (void)config;
  *count = 66;
  return CUDA_SUCCESS;
}

/* Launch ------------------------------------------------------------------------------------ */

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra) {
  (void)config, (void)params, (void)extra;
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  ++launches;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
                        void **extra) {
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream;
  (void)params, (void)extra;
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  ++launches;
  return CUDA_SUCCESS;
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                   CUstream stream, void **params) {
  return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}

/* Symbols ----------------------------------------------------------------------------------- */

/* dlsym on this library finds what is exported under the plain name or under one of cuda.h's
 * versioned names; the newest version comes first because cuda.h made us export that one. */
static void *find(const char *symbol) {
  static const char *const suffixes[] = {"", "_v2", "_v3", "_v4"};
  static _Atomic(void *) self;
  void *handle = atomic_load(&self);
  if (!handle) {
    Dl_info info;
    if (!dladdr((void *)find, &info)) return NULL;
    handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    atomic_store(&self, handle);
  }
  char name[128];
  for (unsigned i = 0; handle && i < sizeof suffixes / sizeof *suffixes; ++i) {
    if (snprintf(name, sizeof name, "%s%s", symbol, suffixes[i]) >= (int)sizeof name) break;
    void *address = dlsym(handle, name);
    if (address) return address;
  }
  return NULL;
}

CUresult cuGetProcAddress(const char *symbol, void **address, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status) {
  (void)version, (void)flags;
  *address = find(symbol);
  if (!*address) *address = (void *)not_supported;
  if (status) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
