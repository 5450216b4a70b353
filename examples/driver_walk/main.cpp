#include <culaunch/culaunch.h>

#include <cstdio>
#include <vector>

int main() try {
  culaunch::Driver& driver = culaunch::Driver::Get();
  const culaunch::DeviceGuard guard(driver, 0);
  const culaunch::Module module = culaunch::Module::FromFile("matmul.cubin");
  const culaunch::Kernel matmul = module["matmul"];

  const unsigned n = 256;
  const size_t bytes = n * n * sizeof(float);
  std::vector<float> a(n * n, 1.0f), b(n * n, 2.0f), c(n * n);
  CUdeviceptr memory = 0;
  CULAUNCH_CHECK(driver.cuMemAlloc(&memory, 3 * bytes));
  CULAUNCH_CHECK(driver.cuMemcpyHtoDAsync(memory, a.data(), bytes, nullptr));
  CULAUNCH_CHECK(driver.cuMemcpyHtoDAsync(memory + bytes, b.data(), bytes, nullptr));
  matmul({{n / 16, n / 16}, {16, 16}}, memory + 2 * bytes, memory, memory + bytes, n);
  CULAUNCH_CHECK(driver.cuMemcpyDtoHAsync(c.data(), memory + 2 * bytes, bytes, nullptr));
  CULAUNCH_CHECK(driver.cuCtxSynchronize());
  CULAUNCH_CHECK(driver.cuMemFree(memory));
  std::printf("c[0] = %g\n", c[0]);
} catch (const culaunch::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
