/* Start-up, errors, the one device, symbols. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "null_driver.h"

const int culaunch_device_types[] = {1, 2, -1};

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char** text) {
  *text = code == CUDA_SUCCESS               ? "CUDA_SUCCESS"
          : code == CUDA_ERROR_NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED"
          : code == CUDA_ERROR_INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
          : code == CUDA_ERROR_NOT_FOUND     ? "CUDA_ERROR_NOT_FOUND"
                                             : "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult code, const char** text) {
  *text = code == CUDA_SUCCESS               ? "no error"
          : code == CUDA_ERROR_NOT_SUPPORTED ? "the null driver does not implement it"
          : code == CUDA_ERROR_INVALID_VALUE ? "invalid argument"
          : code == CUDA_ERROR_NOT_FOUND     ? "named symbol not found"
                                             : "unknown error";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = 0;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  (void)device;
  snprintf(name, (size_t)length, "null device (sm_90)");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  (void)device;
  memset(uuid, 0, sizeof *uuid);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  (void)device;
  snprintf(id, (size_t)length, "0000:00:00.0");
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  (void)device;
  *bytes = (size_t)80 << 30;
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  (void)device;
  *major = 9, *minor = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      *value = 64;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      *value = 2147483647;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      *value = 65535;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 49152;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 232448;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      *value = 233472;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      *value = 65536;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = 2048;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      *value = 32;
      break;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
      *value = 1;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

/* NVRTC looks for this driver too, by its SONAME, and does not expect a library without it. The
 * tables are undocumented; each begins with its size, and these are empty. */
CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  static const size_t empty[1] = {sizeof empty};
  (void)id;
  *table = empty;
  return CUDA_ERROR_NOT_FOUND;
}

static CUresult not_supported(void) { return CUDA_ERROR_NOT_SUPPORTED; }

/* dlsym on this library finds what is exported under the plain name or under one of cuda.h's
 * versioned names; the newest version comes first because cuda.h made us export that one. */
static void* find(const char* symbol) {
  static const char* const suffixes[] = {"", "_v2", "_v3", "_v4"};
  static _Atomic(void*) self;
  void* handle = atomic_load(&self);
  if (!handle) {
    Dl_info info;
    if (!dladdr((void*)find, &info)) return NULL;
    handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    atomic_store(&self, handle);
  }
  char name[128];
  for (unsigned i = 0; handle && i < sizeof suffixes / sizeof *suffixes; ++i) {
    if (snprintf(name, sizeof name, "%s%s", symbol, suffixes[i]) >= (int)sizeof name) break;
    void* address = dlsym(handle, name);
    if (address) return address;
  }
  return NULL;
}

CUresult cuGetProcAddress(const char* symbol, void** address, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  (void)version, (void)flags;
  *address = find(symbol);
  if (!*address) *address = (void*)not_supported;
  if (status) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
