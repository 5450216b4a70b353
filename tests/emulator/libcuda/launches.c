// Loads, launches and copies, with every kind of memory.
#include "program.h"

enum { kCount = 1000 };

static void Launch(CUfunction add, CUdeviceptr y, CUdeviceptr x) {
  int n = kCount;
  void* arguments[] = {&y, &x, &n};
  CHECK(cuLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
}

#define HEAD ".version 7.0\n.target sm_80\n.address_size 64\n"
static const char* const kParts[] = {
    HEAD
    ".extern .func (.param .b32 r) answer();\n"
    ".visible .entry store(.param .u64 p) {\n"
    "  .reg .b32 %r; .reg .b64 %d; ld.param.u64 %d, [p];\n"
    "  { .param .b32 r; call (r), answer; ld.param.b32 %r, [r]; }\n"
    "  st.global.b32 [%d], %r; ret;\n}\n",
    HEAD ".visible .func (.param .b32 r) answer() { st.param.b32 [r], 42; ret; }\n",
};

int main(void) {
  CHECK(cuInit(0));
  CUdevice device;
  CHECK(cuDeviceGet(&device, 0));
  char name[100];
  CHECK(cuDeviceGetName(name, sizeof name, device));
  EXPECT(strcmp(name, "culaunch emulator (sm_80)") == 0);
  CUcontext context, current;
  CHECK(cuCtxCreate(&context, NULL, 0, device));
  CHECK(cuCtxGetCurrent(&current));
  EXPECT(current == context);

  CUmodule module;
  CUfunction add;
  CHECK(cuModuleLoadData(&module, kAdd));
  CHECK(cuModuleGetFunction(&add, module, "add"));
  CUdeviceptr offset;
  size_t size;
  CHECK(cuModuleGetGlobal(&offset, &size, module, "offset"));
  EXPECT(size == 4);
  int value = 7;
  CHECK(cuMemcpyHtoD(offset, &value, 4));
  CHECK(cuMemcpyHtoD(0, &value, 0));  // an empty array
  EXPECT(cuMemcpyHtoD(0, &value, 1) == CUDA_ERROR_INVALID_VALUE);

  // Memory of the device, and copies.
  static int host[kCount], back[kCount];
  for (int i = 0; i < kCount; ++i) host[i] = i;
  CUdeviceptr x, y;
  CHECK(cuMemAlloc(&x, sizeof host));
  CHECK(cuMemAlloc(&y, sizeof host));
  CHECK(cuMemcpyHtoD(x, host, sizeof host));
  CHECK(cuMemsetD32(y, 100, kCount));
  Launch(add, y, x);
  CHECK(cuCtxSynchronize());
  CHECK(cuMemcpyDtoH(back, y, sizeof back));
  for (int i = 0; i < kCount; ++i) EXPECT(back[i] == 100 + i + 7);

  // Pinned, managed and registered memory: one address for the host and the device.
  int* pinned;
  CHECK(cuMemAllocHost((void**)&pinned, sizeof host));
  CUdeviceptr managed, registered;
  CHECK(cuMemAllocManaged(&managed, sizeof host, CU_MEM_ATTACH_GLOBAL));
  CHECK(cuMemHostRegister(host, sizeof host, 0));
  CHECK(cuMemHostGetDevicePointer(&registered, host, 0));
  memset(pinned, 0, sizeof host);
  Launch(add, (CUdeviceptr)pinned, registered);
  memcpy((void*)managed, pinned, sizeof host);
  Launch(add, managed, registered);
  for (int i = 0; i < kCount; ++i) EXPECT(((int*)managed)[i] == 2 * (i + 7));
  unsigned kind;
  CHECK(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)pinned));
  EXPECT(kind == CU_MEMORYTYPE_HOST);
  CHECK(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, x + 8));
  EXPECT(kind == CU_MEMORYTYPE_DEVICE);
  CHECK(cuMemHostUnregister(host));
  EXPECT(cuMemHostUnregister(host) == CUDA_ERROR_INVALID_VALUE);

  // Arguments in one buffer.
  struct {
    CUdeviceptr y, x;
    int n;
  } buffer = {y, x, 10};
  size_t bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CHECK(cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
  CHECK(cuMemcpyDtoH(back, y, sizeof back));
  for (int i = 0; i < kCount; ++i) EXPECT(back[i] == 100 + i + 7 + (i < 10 ? i + 7 : 0));

  // A pool of memory.
  CUmemoryPool pool, own;
  CUdeviceptr from_pool;
  cuuint64_t threshold = 1 << 20, got = 0;
  CHECK(cuDeviceGetDefaultMemPool(&pool, device));
  CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &got));
  EXPECT(got == threshold);
  CUmemPoolProps properties = {0};
  CHECK(cuMemPoolCreate(&own, &properties));
  CHECK(cuMemAllocFromPoolAsync(&from_pool, 64, own, NULL));
  CHECK(cuMemcpyHtoD(from_pool, back, 64));
  CHECK(cuMemFreeAsync(from_pool, NULL));
  CHECK(cuMemPoolDestroy(own));
  EXPECT(cuMemPoolDestroy(own) == CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cuMemPoolDestroy(pool) == CUDA_ERROR_INVALID_VALUE);

  // Rows of a matrix with a pitch.
  CUdeviceptr matrix;
  size_t pitch;
  CHECK(cuMemAllocPitch(&matrix, &pitch, 12, 3, 4));
  EXPECT(pitch >= 12);
  CUDA_MEMCPY2D copy = {0};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = back;
  copy.srcPitch = 400;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = matrix;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 12;
  copy.Height = 3;
  CHECK(cuMemcpy2D(&copy));
  CHECK(cuMemcpyDtoH(host, matrix + 2 * pitch, 12));
  EXPECT(memcmp(host, back + 200, 12) == 0);

  // The driver's linker: a kernel, and the function that it calls.
  CUlinkState link;
  void* linked;
  CHECK(cuLinkCreate(0, NULL, NULL, &link));
  CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void*)kAdd, strlen(kAdd) + 1, "add", 0, NULL, NULL));
  for (int i = 0; i < 2; ++i) {
    const char* part = kParts[i];
    CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void*)part, strlen(part) + 1, "part", 0, NULL,
                        NULL));
  }
  EXPECT(cuLinkAddData(link, CU_JIT_INPUT_CUBIN, (void*)kAdd, 9, "add", 0, NULL, NULL) ==
         CUDA_ERROR_NOT_SUPPORTED);
  EXPECT(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void*)kAdd, 9, "add", 0, NULL, NULL) ==
         CUDA_ERROR_INVALID_PTX);
  CHECK(cuLinkComplete(link, &linked, &size));
  CUmodule again;
  CHECK(cuModuleLoadData(&again, linked));
  CHECK(cuLinkDestroy(link));
  CUfunction store;
  CUdeviceptr stored;
  int number = 0, clock = 0;
  void* place[] = {&stored};
  CHECK(cuMemAlloc(&stored, 4));
  CHECK(cuModuleGetFunction(&store, again, "store"));
  CHECK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, place, NULL));
  CHECK(cuMemcpyDtoH(&number, stored, 4));
  EXPECT(number == 42);
  CHECK(cuMemFree(stored));
  CHECK(cuModuleUnload(again));

  // A managed variable, and an attribute that culaunch itself does not need.
  CUlibrary library;
  CHECK(cuLibraryLoadData(&library, kAdd, NULL, NULL, 0, NULL, NULL, 0));
  CHECK(cuLibraryGetManaged(&stored, &size, library, "offset"));
  EXPECT(size == 4 && *(int*)stored == 5);
  CHECK(cuLibraryUnload(library));
  CHECK(cuDeviceGetAttribute(&clock, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0));
  EXPECT(clock == 1000000);
  EXPECT(cuModuleLoad(&again, "no such file") == CUDA_ERROR_FILE_NOT_FOUND);

  // Events and streams.
  CUstream stream;
  CUevent start, end;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
  CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
  CHECK(cuEventRecord(start, stream));
  CHECK(cuEventRecord(end, stream));
  CHECK(cuStreamSynchronize(stream));
  float milliseconds = -1;
  CHECK(cuEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds >= 0);

  // A function by its name, in the form of a version of CUDA.
  CUresult (*allocate)(CUdeviceptr*, size_t) = NULL;
  CUdriverProcAddressQueryResult status;
  CHECK(cuGetProcAddress("cuMemAlloc", (void**)&allocate, 12000, 0, &status));
  EXPECT(status == CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT(allocate == cuMemAlloc);
  void* nothing = &value;
  EXPECT(cuGetProcAddress("cuNothing", &nothing, 12000, 0, &status) == CUDA_ERROR_NOT_FOUND);
  EXPECT(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND && nothing == NULL);

  CHECK(cuMemFree(x));
  EXPECT(cuMemFree(x) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuModuleUnload(module));
  CHECK(cuCtxDestroy(context));
  EXPECT(cuMemAlloc(&x, 4) == CUDA_ERROR_INVALID_CONTEXT);
  puts("done");
  return 0;
}
