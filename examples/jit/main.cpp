// Compiles a kernel while it runs, for the GPU that is there, and launches it.
#include <culaunch/culaunch.h>
#include <culaunch/jit.h>

#include <cstdio>

CULAUNCH_EMBED_HEADERS(device_headers);

constexpr char kSource[] = R"(
#include <device/vectors.cuh>

template <class T, int N>
__global__ void scale(T* y, const T* x, T a, int n) {
  using Items = Vector<T, N>;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * N >= n) return;
  Items items = reinterpret_cast<const Items*>(x)[i];
  for (T& item : items.items) item = a * twice(item);
  reinterpret_cast<Items*>(y)[i] = items;
}
)";

int main() try {
  constexpr int kCount = 1024;
  culaunch::Jit jit;
  jit.AddHeaders(CULAUNCH_HEADERS(device_headers));
  culaunch::Module& module = jit.Module(kSource, {"scale<float, 4>", "scale<double, 2>"});

  culaunch::Driver& driver = culaunch::Driver::Get();
  const culaunch::DeviceGuard guard(driver, 0);
  CUdeviceptr x = 0;
  CULAUNCH_CHECK(driver.cuMemAlloc(&x, kCount * sizeof(float)));
  module.GetKernel("scale<float, 4>")({{4}, {64}}, x, x, 2.0f, kCount);

  // The same with a list of arguments that is made while the program runs.
  culaunch::Arguments arguments;
  arguments.Add(x).Add(x).Add(0.5f).Add(kCount);
  module.GetKernel("scale<float, 4>").Launch({{4}, {64}}, arguments);
  CULAUNCH_CHECK(driver.cuMemFree(x));
  std::printf("compiled with %s\n", jit.NvrtcPath().c_str());
} catch (const culaunch::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
