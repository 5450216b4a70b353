// A kernel that gets an address of the host's: the report, and the codes.
#include "program.h"

int main(void) {
  CHECK(cuInit(0));
  CUcontext context;
  CHECK(cuCtxCreate(&context, NULL, 0, 0));
  CUmodule module;
  CUfunction add;
  EXPECT(cuModuleLoadData(&module, "no image") == CUDA_ERROR_INVALID_IMAGE);
  const char* text;
  CHECK(cuGetErrorString(CUDA_ERROR_INVALID_IMAGE, &text));
  EXPECT(strstr(text, "neither PTX nor a cubin nor a fatbin") != NULL);
  CHECK(cuModuleLoadData(&module, kAdd));
  EXPECT(cuModuleGetFunction(&add, module, "sub") == CUDA_ERROR_NOT_FOUND);
  CHECK(cuModuleGetFunction(&add, module, "add"));
  CUdeviceptr y;
  CHECK(cuMemAlloc(&y, 400));

  // Missing functions: each names itself once.
  CUipcMemHandle shared;
  for (int i = 0; i < 3; ++i) {
    EXPECT(cuIpcGetMemHandle(&shared, y) == CUDA_ERROR_NOT_SUPPORTED);
  }
  CUdevice device;
  EXPECT(cuDeviceGet(&device, 1) == CUDA_ERROR_INVALID_DEVICE);

  int host[100] = {0}, n = 100;
  void* raw = host;
  void* arguments[] = {&y, &raw, &n};
  EXPECT(cuLaunchKernel(add, 1, 1, 1, 2000, 1, 1, 0, NULL, arguments, NULL) ==
         CUDA_ERROR_INVALID_VALUE);
  CHECK(cuCtxSynchronize());
  CUresult code = cuLaunchKernel(add, 1, 1, 1, 100, 1, 1, 0, NULL, arguments, NULL);
  EXPECT(code == CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);  // sticky, as on a GPU
  EXPECT(cuMemcpyDtoH(host, y, 4) == CUDA_ERROR_ILLEGAL_ADDRESS);
  puts("done");
  return 0;
}
