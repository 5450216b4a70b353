/* Modules, kernels and their launch. CUlibrary, CUkernel, CUmodule and CUfunction are the same. */
#include <stdio.h>
#include <string.h>

#include "null_driver.h"

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
static uint64_t launches; /* not atomic: a lock prefix would be half of the cost */

int null_set_params(const char* name, int count, const size_t* sizes) {
  unsigned index = 0;
  while (index < kernel_count && strcmp(kernels[index].name, name) != 0) ++index;
  if (index == MAX_KERNELS || count < 0 || count > MAX_PARAMS || strlen(name) > 255) return -1;
  if (index == kernel_count) ++kernel_count;
  Kernel* kernel = &kernels[index];
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

uint64_t null_launch_count(void) { return launches; }

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit,
                           void** jit_values, unsigned jit_count, CUlibraryOption* options,
                           void** values, unsigned count) {
  (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
  *library = (CUlibrary)kernels;
  return code ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryUnload(CUlibrary library) { return (void)library, CUDA_SUCCESS; }

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  *module = (CUmodule)library;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  (void)library;
  for (unsigned i = 0; i < kernel_count; ++i) {
    if (strcmp(kernels[i].name, name) != 0) continue;
    *kernel = (CUkernel)&kernels[i];
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  (void)library;
  *count = kernel_count;
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* out, unsigned count, CUlibrary library) {
  (void)library;
  for (unsigned i = 0; i < count && i < kernel_count; ++i) out[i] = (CUkernel)&kernels[i];
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, size_t* bytes, CUlibrary library,
                            const char* name) {
  (void)pointer, (void)bytes, (void)library, (void)name;
  return CUDA_ERROR_NOT_FOUND; /* an image here has kernels and nothing else */
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  *function = (CUfunction)kernel;
  return null_current_context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  (void)kernel;
  *library = (CUlibrary)kernels;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  *name = ((Kernel*)kernel)->name;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  return cuKernelGetName(name, (CUkernel)function);
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
  const Kernel* kernel = (const Kernel*)handle;
  if (index >= (size_t)kernel->count) return CUDA_ERROR_INVALID_VALUE;
  if (offset) *offset = kernel->offsets[index];
  if (size) *size = kernel->sizes[index];
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  return cuKernelGetParamInfo((CUkernel)function, index, offset, size);
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 16;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = ((Kernel*)function)->dynamic_shared ? ((Kernel*)function)->dynamic_shared : 49152;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value < 0 || value > 232448) return CUDA_ERROR_INVALID_VALUE;
    ((Kernel*)function)->dynamic_shared = value;
  }
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
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

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  (void)function;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  (void)function;
  *module = (CUmodule)kernels;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return cuLibraryLoadData((CUlibrary*)module, image, NULL, NULL, 0, NULL, NULL, 0);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                            CUjit_option* options, void** values) {
  (void)count, (void)options, (void)values;
  return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module) { return (void)module, CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return cuLibraryGetKernel((CUkernel*)function, (CUlibrary)module, name);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     size_t shared) {
  (void)function, (void)shared;
  *blocks = threads > 0 && threads <= 1024 ? 2048 / threads : 0;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int threads, size_t shared,
                                                              unsigned flags) {
  (void)flags;
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block, size_t shared,
                                          int limit) {
  (void)function, (void)shared_of_block, (void)shared;
  *grid = 264, *block = limit > 0 && limit < 1024 ? limit : 1024;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function,
                                            const CUlaunchConfig* config) {
  (void)function, (void)config;
  *size = 8;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* count, CUfunction function,
                                      const CUlaunchConfig* config) {
  (void)function, (void)config;
  *count = 66;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                          void** extra) {
  (void)config, (void)params, (void)extra;
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  ++launches;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream, void** params,
                        void** extra) {
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream;
  (void)params, (void)extra;
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  ++launches;
  return CUDA_SUCCESS;
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                   CUstream stream, void** params) {
  return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}
