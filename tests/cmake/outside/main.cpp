#include <culaunch/culaunch.h>

#include <cstdio>

CULAUNCH_EMBED_CUBIN(kernels);

void plugin1();
void plugin2();
void static_part();
void object_part();

int main() try {
  float* x = nullptr;
  CULAUNCH_GET_KERNEL(kernels, "scale")({4, 256}, x, x, 2.0f, 1000);
  CULAUNCH_GET_KERNEL(kernels, "shift")({4, 256}, x, 1000);
  plugin1();
  plugin2();
  static_part();
  object_part();
} catch (const culaunch::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
