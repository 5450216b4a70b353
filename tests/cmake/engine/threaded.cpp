// Compiles for each thread's own default stream.
#include <culaunch/culaunch.h>
#include <culaunch/jit.h>

#if !defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#error "culaunch::jit_per_thread says so"
#endif

extern "C" __attribute__((visibility("default"))) bool Run() {
  bool ran = false;
  {
    culaunch::Jit jit;
    const auto module = jit.TryModule("extern \"C\" __global__ void threaded(int* x) { *x = 3; }");
    if (!module) return false;
    const auto kernel = (*module)->TryGetKernel("threaded");
    ran = kernel.ok() && kernel->TryLaunch({{1}, {32}}, nullptr).ok();
  }
  culaunch::UnloadLibrary();
  return ran;
}
