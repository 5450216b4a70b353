// One launch by calls of the driver: no checks, one device, and a program that links libcuda.
#include <cuda.h>

extern "C" const unsigned char kernels_image[];

CUresult Scale(float* y, const float* x, float factor, int n, CUstream stream) {
  static CUlibrary library = nullptr;
  static CUkernel kernel = nullptr;
  if (kernel == nullptr) {
    CUresult code =
        cuLibraryLoadData(&library, kernels_image, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (code == CUDA_SUCCESS) code = cuLibraryGetKernel(&kernel, library, "scale");
    if (code != CUDA_SUCCESS) return code;
  }
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(n + 255) / 256;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 256;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  void* arguments[] = {&y, &x, &factor, &n};
  return cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), arguments, nullptr);
}
