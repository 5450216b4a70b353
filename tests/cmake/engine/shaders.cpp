#include "shaders.h"

#include <cstdio>

CULAUNCH_EMBED_HEADERS(device);

namespace {

constexpr char kShader[] = R"(
#include <device/numbers.h>
extern "C" __device__ float brighten(float x);
template <class T, int N> __global__ void shade(T* y) {
  for (int i = 0; i < N; ++i) y[i] = twice(brighten(y[i]));
}
)";
constexpr char kBrighten[] = R"(extern "C" __device__ float brighten(float x) { return 1 + x; })";

}  // namespace

culaunch::Module* Shaders() {
  // Never deleted: at the end of the process the driver may be gone before it.
  static auto& jit = *new culaunch::Jit;
  jit.AddHeaders(CULAUNCH_HEADERS(device));
  culaunch::CompileOptions options;
  options.arch = {"sm_90"};
  options.lto = true;
  const auto shader = jit.TryCompile(kShader, {"shade<float, 4>"}, options);
  const auto brighten = jit.TryCompile(kBrighten, {}, options);
  if (!shader || !brighten) {
    std::fprintf(stderr, "%s%s\n", shader.what(), brighten.what());
    return nullptr;
  }
  const auto linked = jit.TryLink({*shader, *brighten});
  if (!linked) {
    std::fprintf(stderr, "%s\n", linked.what());
    return nullptr;
  }
  const std::string bytes = linked->ToFile();
  auto module = culaunch::Module::TryLoad(bytes.data(), bytes.size());
  if (!module) {
    std::fprintf(stderr, "%s\n", module.what());
    return nullptr;
  }
  return new culaunch::Module(std::move(*module));
}
