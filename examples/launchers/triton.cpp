// A Triton kernel in a C++ program: compiled by triton_kernel.py, embedded by CMake.
#include <culaunch/culaunch.h>

#include <cstdio>
#include <vector>

CULAUNCH_EMBED_CUBIN(triton_kernels);

int main() try {
  culaunch::Driver& driver = culaunch::Driver::Get();
  const culaunch::DeviceGuard guard(driver, 0);
  int n = 1000;
  std::vector<float> host(1000, 3.0f);
  const size_t bytes = host.size() * sizeof(float);
  CUdeviceptr x = 0;
  CULAUNCH_CHECK(driver.cuMemAlloc(&x, bytes));
  CULAUNCH_CHECK(driver.cuMemcpyHtoDAsync(x, host.data(), bytes, nullptr));

  const culaunch::Kernel& square = CULAUNCH_GET_KERNEL(triton_kernels, "square");
  // After the source's arguments: null for each pointer to scratch memory that Triton added.
  CUdeviceptr scratch = 0;
  std::vector<void*> arguments = {&x, &x, &n};
  arguments.resize(square.parameters().size(), &scratch);
  const culaunch::LaunchConfig config(1, 128);  // 4 warps, as triton_kernel.py says
  const CUresult code = square.Launch(arguments.data(), config);
  if (code != CUDA_SUCCESS) square.Throw(code, config);

  CULAUNCH_CHECK(driver.cuMemcpyDtoHAsync(host.data(), x, bytes, nullptr));
  CULAUNCH_CHECK(driver.cuCtxSynchronize());
  CULAUNCH_CHECK(driver.cuMemFree(x));
  std::printf("3 * 3 = %g\n", host[0]);
} catch (const culaunch::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
