// A program that compiles with NVRTC for the machine code of its device, as most programs do.
#include "program.h"

typedef void* Program;
int nvrtcCreateProgram(Program*, const char*, const char*, int, const char* const*,
                       const char* const*);
int nvrtcCompileProgram(Program, int, const char* const*);
int nvrtcGetCUBINSize(Program, size_t*);
int nvrtcGetCUBIN(Program, char*);

static const char* const kSource = "extern \"C\" __global__ void put(int* y) { *y = VALUE; }\n";

static int Run(int count, const char* const* options) {
  Program program;
  size_t size;
  EXPECT(nvrtcCreateProgram(&program, kSource, "put.cu", 0, NULL, NULL) == 0);
  EXPECT(nvrtcCompileProgram(program, count, options) == 0);
  EXPECT(nvrtcGetCUBINSize(program, &size) == 0);
  char* image = malloc(size);
  EXPECT(nvrtcGetCUBIN(program, image) == 0);
  CUmodule module;
  CUfunction put;
  CUdeviceptr y;
  int host = 0;
  CHECK(cuModuleLoadData(&module, image));
  CHECK(cuModuleGetFunction(&put, module, "put"));
  CHECK(cuMemAlloc(&y, sizeof host));
  void* arguments[] = {&y};
  CHECK(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuMemcpyDtoH(&host, y, sizeof host));
  free(image);
  return host;
}

int main(void) {
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  const char* const joined[] = {"--gpu-architecture=sm_80", "-DVALUE=7"};
  EXPECT(Run(2, joined) == 7);
  const char* const apart[] = {"-Dsm_80=8", "-DVALUE=sm_80", "-arch", "sm_80"};
  EXPECT(Run(4, apart) == 8);
  puts("done");
  return 0;
}
