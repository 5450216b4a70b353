// Device memory is the host's.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "internal.h"

static void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

extern "C" {

CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  if (fake::Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const size_t size = (bytes + 255) / 256 * 256 + 256;
  void* memory = std::aligned_alloc(256, size);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(std::memset(memory, 0, size));
  return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address) {
  std::free(Pointer(address));
  return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream) {
  return cuMemAlloc(address, bytes);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return cuMemFree(address); }

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  std::memcpy(Pointer(to), from, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  std::memcpy(to, Pointer(from), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return cuMemcpyHtoD(to, Pointer(from), bytes);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return cuMemcpyDtoD(to, from, bytes);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream) {
  return cuMemcpyHtoD(to, from, bytes);
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream) {
  return cuMemcpyDtoH(to, from, bytes);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  return cuMemcpyDtoD(to, from, bytes);
}

CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t bytes) {
  std::memset(Pointer(to), value, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream) {
  return cuMemsetD8(to, value, bytes);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream) {
  std::fill_n(static_cast<unsigned short*>(Pointer(to)), count, value);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream) {
  std::fill_n(static_cast<unsigned*>(Pointer(to)), count, value);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                            size_t height, CUstream stream) {
  for (size_t row = 0; row < height; ++row) {
    cuMemsetD32Async(to + row * pitch, value, width, stream);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t* free_bytes, size_t* total) {
  if (fake::Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *total = fake::kMemoryBytes;
  *free_bytes = fake::kMemoryBytes / 2;
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  CUdeviceptr address = 0;
  const CUresult code = cuMemAlloc(&address, bytes);
  *memory = Pointer(address);
  return code;
}

CUresult cuMemFreeHost(void* memory) {
  std::free(memory);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned) {
  return cuMemAlloc(address, bytes);
}

// With the log it knows no address, as a driver that is given host memory.
CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr) {
  if (fake::kLogs) return CUDA_ERROR_INVALID_VALUE;
  if (attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) return CUDA_ERROR_NOT_SUPPORTED;
  *static_cast<int*>(value) = 0;
  return CUDA_SUCCESS;
}

}  // extern "C"
