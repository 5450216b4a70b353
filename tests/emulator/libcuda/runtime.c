// The runtime without nvcc: what its code calls, and the structures of the header.
#include <cuda_runtime_api.h>
#include <stddef.h>

#include "program.h"

extern void** __cudaRegisterFatBinary(void* wrapper);
extern void __cudaRegisterFatBinaryEnd(void** handle);
extern void __cudaUnregisterFatBinary(void** handle);
extern void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                                   int limit, void* a, void* b, void* c, void* d, int* e);
extern void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int ext,
                              size_t size, int constant, int global);
extern unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream);
extern cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared,
                                              void* stream);

#define RUN(call) EXPECT((call) == cudaSuccess)

static void Add(void) {}
static int offset;

int main(void) {
  struct {
    int magic, version;
    const void *data, *file;
  } wrapper = {0x466243b1, 1, kAdd, NULL};
  void** handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(handle, (const char*)Add, NULL, "add", -1, 0, 0, 0, 0, 0);
  __cudaRegisterVar(handle, (char*)&offset, NULL, "offset", 0, 4, 0, 0);
  __cudaRegisterFatBinaryEnd(handle);

  struct cudaDeviceProp device;
  memset(&device, 1, sizeof device);
  RUN(cudaGetDeviceProperties(&device, 0));
  EXPECT(strcmp(device.name, "culaunch emulator (sm_80)") == 0);
  EXPECT(device.totalGlobalMem > 1 << 20 && device.sharedMemPerBlock == 48 << 10);
  EXPECT(device.regsPerBlock == 65536 && device.warpSize == 32 && device.memPitch > 1 << 20);
  EXPECT(device.maxThreadsPerBlock == 1024 && device.maxThreadsDim[2] == 64);
  EXPECT(device.maxGridSize[0] == 0x7fffffff && device.maxGridSize[2] == 65535);
  EXPECT(device.totalConstMem == 64 << 10 && device.major == 8 && device.minor == 0);
  EXPECT(device.textureAlignment == 512 && device.multiProcessorCount == 16);
  EXPECT(device.canMapHostMemory == 1 && device.concurrentKernels == 1);
  EXPECT(device.unifiedAddressing == 1 && device.maxThreadsPerMultiProcessor == 2048);
  EXPECT(device.sharedMemPerMultiprocessor == 164 << 10 && device.managedMemory == 1);
  EXPECT(device.regsPerMultiprocessor == 65536 && device.cooperativeLaunch == 1);
  EXPECT(device.sharedMemPerBlockOptin == 163 << 10 && device.maxBlocksPerMultiProcessor == 32);
  EXPECT(device.reservedSharedMemPerBlock == 1024 && device.clusterLaunch == 0);
  EXPECT(device.hostNumaMultinodeIpcSupported == 0);

#if defined(__x86_64__)
  const struct cudaChannelFormatDesc format =
      cudaCreateChannelDesc(32, 16, 8, 1, cudaChannelFormatKindFloat);
  EXPECT(format.x == 32 && format.y == 16 && format.z == 8 && format.w == 1);
  EXPECT(format.f == cudaChannelFormatKindFloat);
#endif

  int *x, *y, host[64], size = 0;
  RUN(cudaFree(NULL));
  RUN(cudaMalloc((void**)&x, 0));
  EXPECT(x == NULL);
  RUN(cudaMemset(x, 0, 0));
  RUN(cudaMalloc((void**)&x, sizeof host));
  RUN(cudaMallocHost((void**)&y, sizeof host));
  for (int i = 0; i < 64; ++i) host[i] = y[i] = i;
  RUN(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
  EXPECT(cudaMemcpy(host, host, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  unsigned char *rows, square[3][4];
  size_t pitch;
  RUN(cudaMallocPitch((void**)&rows, &pitch, 5, 3));
  RUN(cudaMemset2D(rows, pitch, 0x101, 5, 3));
  RUN(cudaMemset2DAsync(rows + pitch + 1, pitch, 2, 2, 2, NULL));
  RUN(cudaMemcpy2D(square, 4, rows, pitch, 4, 3, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 12; ++i) {
    EXPECT(square[i / 4][i % 4] == (i > 4 && (i % 4 == 1 || i % 4 == 2) ? 2 : 1));
  }
  RUN(cudaFree(rows));
  const int seven = 7;
  RUN(cudaMemcpyToSymbol(&offset, &seven, 4, 0, cudaMemcpyHostToDevice));
  EXPECT(cudaMemcpyToSymbol(&size, &seven, 4, 0, cudaMemcpyDefault) == cudaErrorInvalidSymbol);

  dim3 grid = {2, 1, 1}, block = {32, 1, 1}, popped_grid, popped_block;
  size_t shared;
  cudaStream_t stream;
  EXPECT(__cudaPushCallConfiguration(grid, block, 16, NULL) == 0);
  RUN(__cudaPopCallConfiguration(&popped_grid, &popped_block, &shared, &stream));
  EXPECT(popped_grid.x == 2 && popped_block.x == 32 && popped_block.z == 1);
  EXPECT(shared == 16 && stream == NULL);
  int n = 64;
  void* arguments[] = {&y, &x, &n};
  RUN(cudaLaunchKernel((const void*)Add, popped_grid, popped_block, arguments, 0, stream));
  for (int i = 0; i < 64; ++i) EXPECT(y[i] == 2 * i + 7);
  EXPECT(cudaLaunchKernel((const void*)main, grid, block, arguments, 0, NULL) ==
         cudaErrorInvalidDeviceFunction);

  cudaLaunchConfig_t config = {{2, 1, 1}, {32, 1, 1}, 0, NULL, NULL, 0};
  RUN(cudaLaunchKernelExC(&config, (const void*)Add, arguments));
  for (int i = 0; i < 64; ++i) EXPECT(y[i] == 3 * i + 14);

  // A launch that a stream captures runs when its graph is launched.
  cudaGraph_t graph;
  cudaGraphExec_t run;
  enum cudaStreamCaptureStatus status;
  RUN(cudaStreamCreate(&stream));
  RUN(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  RUN(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  RUN(cudaLaunchKernel((const void*)Add, grid, block, arguments, 0, stream));
  RUN(cudaStreamEndCapture(stream, &graph));
  RUN(cudaGraphInstantiate(&run, graph, 0));
  EXPECT(y[1] == 3 + 14);
  RUN(cudaGraphLaunch(run, stream));
  RUN(cudaGraphLaunch(run, stream));
  for (int i = 0; i < 64; ++i) EXPECT(y[i] == 5 * i + 28);
  RUN(cudaGraphExecDestroy(run));
  RUN(cudaGraphDestroy(graph));
  RUN(cudaStreamDestroy(stream));

  struct cudaFuncAttributes kernel;
  cudaLibrary_t library;
  cudaKernel_t add, all[1];
  unsigned count;
  int *five, read;
  size_t bytes;
  RUN(cudaLibraryLoadData(&library, kAdd, NULL, NULL, 0, NULL, NULL, 0));
  RUN(cudaLibraryGetKernelCount(&count, library));
  RUN(cudaLibraryEnumerateKernels(all, 1, library));
  RUN(cudaLibraryGetKernel(&add, library, "add"));
  EXPECT(count == 1 && all[0] == add);
  RUN(cudaLibraryGetGlobal((void**)&five, &bytes, library, "offset"));
  RUN(cudaMemcpy(&read, five, bytes, cudaMemcpyDeviceToHost));
  EXPECT(bytes == 4 && read == 5);
  RUN(cudaKernelSetAttributeForDevice(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10,
                                      0));
  RUN(cudaFuncGetAttributes(&kernel, (const void*)add));
  EXPECT(kernel.maxDynamicSharedSizeBytes == 64 << 10);
  RUN(cudaLaunchKernel((const void*)add, grid, block, arguments, 60 << 10, NULL));
  for (int i = 0; i < 64; ++i) EXPECT(y[i] == 6 * i + 33);
  RUN(cudaLibraryUnload(library));
  EXPECT(cudaLaunchKernel((const void*)add, grid, block, arguments, 0, NULL) ==
         cudaErrorInvalidDeviceFunction);

  RUN(cudaFuncGetAttributes(&kernel, (const void*)Add));
  EXPECT(kernel.maxThreadsPerBlock == 1024 && kernel.numRegs == 32 && kernel.ptxVersion == 80);
  EXPECT(kernel.maxDynamicSharedSizeBytes == 48 << 10);
  struct cudaPointerAttributes memory;
  RUN(cudaPointerGetAttributes(&memory, x + 3));
  EXPECT(memory.type == cudaMemoryTypeDevice && memory.device == 0);
  EXPECT(memory.devicePointer == x + 3);
  RUN(cudaPointerGetAttributes(&memory, y));
  EXPECT(memory.type == cudaMemoryTypeHost && memory.hostPointer == y);
  RUN(cudaPointerGetAttributes(&memory, host));
  EXPECT(memory.type == cudaMemoryTypeUnregistered && memory.devicePointer == NULL);
  RUN(cudaMemcpy2D(host, 16, y, 32, 8, 4, cudaMemcpyDefault));
  EXPECT(host[4] == y[8] && host[5] == y[9] && host[13] == y[25]);

  EXPECT(cudaSetDevice(1) == cudaErrorInvalidDevice);
  EXPECT(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
  RUN(cudaGetLastError());
  EXPECT(strcmp(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice") == 0);
  EXPECT(strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument") == 0);
  void* entry;
  enum cudaDriverEntryPointQueryResult found;
  RUN(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, 0, &found));
  EXPECT(found == cudaDriverEntryPointSuccess && entry != NULL);
  RUN(cudaFreeHost(y));
  RUN(cudaFree(x));
  __cudaUnregisterFatBinary(handle);
  EXPECT(cudaGetSymbolSize(&shared, &offset) == cudaErrorInvalidSymbol);
  puts("done");
  return 0;
}
