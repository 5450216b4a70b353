/* What the written source uses of cuda.h: the real one takes a tenth of a second to read. */
#pragma once
#include <stddef.h>
typedef enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209
} CUresult;
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct library* CUlibrary;
typedef struct kernel* CUkernel;
typedef struct function* CUfunction;
typedef struct stream_object* CUstream;
typedef struct {
  int id;
  struct {
    struct {
      unsigned x, y, z;
    } clusterDim;
    int cooperative, programmaticStreamSerializationAllowed, clusterSchedulingPolicyPreference;
  } value;
} CUlaunchAttribute;
typedef struct {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
} CUlaunchConfig;
enum {
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
  CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
  CU_CLUSTER_SCHEDULING_POLICY_SPREAD,
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
};
CUresult cuCtxGetDevice(CUdevice*);
CUresult cuDeviceGetAttribute(int*, int, CUdevice);
CUresult cuDeviceGetName(char*, int, CUdevice);
CUresult cuLibraryLoadData(CUlibrary*, const void*, void*, void*, int, void*, void*, int);
CUresult cuLibraryGetKernel(CUkernel*, CUlibrary, const char*);
CUresult cuKernelGetFunction(CUfunction*, CUkernel);
CUresult cuLibraryUnload(CUlibrary);
CUresult cuKernelSetAttribute(int, int, CUkernel, CUdevice);
CUresult cuMemAllocAsync(CUdeviceptr*, size_t, CUstream);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void**, void**);
