/* Device memory is the host's. */
#include <stdlib.h>
#include <string.h>

#include "null_driver.h"

CUresult cuMemAlloc(CUdeviceptr* pointer, size_t bytes) {
  void* memory = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
  *pointer = (CUdeviceptr)(uintptr_t)memory;
  return memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree(CUdeviceptr pointer) {
  free((void*)(uintptr_t)pointer);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemAlloc(pointer, bytes);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  (void)stream;
  return cuMemFree(pointer);
}

CUresult cuMemcpyHtoD(CUdeviceptr target, const void* source, size_t bytes) {
  memcpy((void*)(uintptr_t)target, source, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void* target, CUdeviceptr source, size_t bytes) {
  memcpy(target, (const void*)(uintptr_t)source, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoD(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  return cuMemcpyHtoD(target, (const void*)(uintptr_t)source, bytes);
}

CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  return cuMemcpyDtoD(target, source, bytes);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr target, const void* source, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemcpyHtoD(target, source, bytes);
}

CUresult cuMemcpyDtoHAsync(void* target, CUdeviceptr source, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemcpyDtoH(target, source, bytes);
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemcpyDtoD(target, source, bytes);
}

CUresult cuMemsetD8(CUdeviceptr target, unsigned char value, size_t bytes) {
  memset((void*)(uintptr_t)target, value, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemsetD8(target, value, bytes);
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  (void)pointer;
  if (attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) return CUDA_ERROR_NOT_SUPPORTED;
  *(int*)value = 0;
  return CUDA_SUCCESS;
}
