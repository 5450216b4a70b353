// A program that carries its kernels: built by culaunch_add_kernels.
#include <culaunch/culaunch.h>

#include <cstdio>

CULAUNCH_EMBED_CUBIN(my_kernels);

int main() try {
  culaunch::Driver& driver = culaunch::Driver::Get();
  const culaunch::DeviceGuard guard(driver, 0);
  const int n = 1000;
  float host[n] = {};
  CUdeviceptr x = 0;
  CULAUNCH_CHECK(driver.cuMemAlloc(&x, sizeof host));
  CULAUNCH_CHECK(driver.cuMemcpyHtoDAsync(x, host, sizeof host, nullptr));
  for (int i = 0; i < 3; ++i) {
    CULAUNCH_GET_KERNEL(my_kernels, "add_one")({(n + 255) / 256, 256}, x, x, n);
  }
  CULAUNCH_CHECK(driver.cuMemcpyDtoHAsync(host, x, sizeof host, nullptr));
  CULAUNCH_CHECK(driver.cuCtxSynchronize());
  CULAUNCH_CHECK(driver.cuMemFree(x));
  std::printf("0 + 1 + 1 + 1 = %g\n", host[n - 1]);
} catch (const culaunch::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
