// A program over culaunch's header.
#include <culaunch/culaunch.h>

#include <cstdio>
#include <vector>

#include "program.h"

int main() try {
  culaunch::Driver& driver = culaunch::Driver::Get();
  const culaunch::DeviceGuard guard(driver, 0);
  const culaunch::Module module(kAdd, sizeof(char) * strlen(kAdd) + 1);
  std::vector<int> host = {1, 2, 3, 4};
  CUdeviceptr memory = 0;
  CULAUNCH_CHECK(driver.cuMemAlloc(&memory, 32));
  CULAUNCH_CHECK(driver.cuMemcpyHtoDAsync(memory, host.data(), 16, nullptr));
  CULAUNCH_CHECK(driver.cuMemcpyHtoDAsync(memory + 16, host.data(), 16, nullptr));
  module["add"]({{1}, {32}}, memory, memory + 16, 4);
  CULAUNCH_CHECK(driver.cuMemcpyDtoHAsync(host.data(), memory, 16, nullptr));
  std::printf("%s: %d %d %d %d\n", driver.name().c_str(), host[0], host[1], host[2], host[3]);
  module["add"]({{1}, {32}}, memory, host.data(), 4);
} catch (const culaunch::Error& error) {
  std::printf("%s\n", error.what());
  return 1;
}
