// The number of blocks that fit, which is always the same; and the functions that this driver
// lacks.
#include "internal.h"

extern "C" {

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, size_t) {
  *blocks = 2;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int threads, size_t shared,
                                                              unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction, CUoccupancyB2DSize,
                                          size_t, int) {
  *grid = 264;
  *block = fake::kMaxThreads;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction, const CUlaunchConfig*) {
  *size = 8;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* count, CUfunction, const CUlaunchConfig*) {
  *count = 16;
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Memory has only the host's layout here: there are no CUDA arrays, textures or surfaces.
CUresult cuArray3DCreate(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuArrayDestroy(CUarray) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D*, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuTexObjectCreate(CUtexObject*, const CUDA_RESOURCE_DESC*, const CUDA_TEXTURE_DESC*,
                           const CUDA_RESOURCE_VIEW_DESC*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuTexObjectDestroy(CUtexObject) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuSurfObjectCreate(CUsurfObject*, const CUDA_RESOURCE_DESC*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuSurfObjectDestroy(CUsurfObject) { return CUDA_ERROR_NOT_SUPPORTED; }

}  // extern "C"
