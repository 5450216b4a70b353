// Threads that start the driver together, then launch; and a child that launches after a fork.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

enum { kThreads = 6, kLaunches = 5 };

static CUcontext context;
static CUfunction add;
static pthread_barrier_t barrier;

static int Sum(CUdeviceptr y, CUdeviceptr x, int launches) {
  int n = 64, back[64];
  void* arguments[] = {&y, &x, &n};
  for (int i = 0; i < launches; ++i) {
    CHECK(cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL));
  }
  CHECK(cuMemcpyDtoH(back, y, sizeof back));
  return back[63];
}

static void* Run(void* argument) {
  const int number = *(int*)argument;
  pthread_barrier_wait(&barrier);
  CHECK(cuInit(0));
  EXPECT(cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT);  // a context is a thread's own
  pthread_barrier_wait(&barrier);
  if (number == 0) {
    CUmodule module;
    CHECK(cuCtxCreate(&context, NULL, 0, 0));
    CHECK(cuModuleLoadData(&module, kAdd));
    CHECK(cuModuleGetFunction(&add, module, "add"));
  }
  pthread_barrier_wait(&barrier);
  CHECK(cuCtxSetCurrent(context));
  CUdeviceptr x, y;
  CHECK(cuMemAlloc(&x, 256));
  CHECK(cuMemAlloc(&y, 256));
  CHECK(cuMemsetD32(x, (unsigned)number, 64));
  CHECK(cuMemsetD32(y, 0, 64));
  EXPECT(Sum(y, x, kLaunches) == kLaunches * (number + 5));
  CUcontext current;
  CHECK(cuCtxGetCurrent(&current));  // it stays current between calls
  EXPECT(current == context);
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  int numbers[kThreads];
  pthread_barrier_init(&barrier, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, Run, &numbers[i]);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);

  CHECK(cuCtxSetCurrent(context));
  CUdeviceptr x, y;
  CHECK(cuMemAllocManaged(&x, 256, CU_MEM_ATTACH_GLOBAL));
  CHECK(cuMemAllocManaged(&y, 256, CU_MEM_ATTACH_GLOBAL));
  fflush(stdout);
  const pid_t child = fork();
  const int sum = Sum(y, x, 2);
  if (child == 0) exit(sum == 10 ? 42 : 1);
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 42);
  EXPECT(sum == 10);
  puts("done");
  return 0;
}
