#include <culaunch/culaunch.h>

#include <cstdint>

CULAUNCH_EMBED_CUBIN(kernels);

// plugin1's kernel takes an int, plugin2's a long long.
void PLUGIN() {
  const culaunch::Kernel& kernel = CULAUNCH_GET_KERNEL(kernels, "plugin");
  if (kernel.parameters()[0].size == 4) {
    kernel({1, 1}, std::int32_t{1});
  } else {
    kernel({1, 1}, std::int64_t{2});
  }
}
