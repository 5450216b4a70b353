#include <cstdio>
#include <cstdlib>

#include "plugins.h"
#include "shaders.h"

int main(int, char** words) {
  culaunch::Module* const shaders = Shaders();
  if (shaders == nullptr) return 1;
  const auto kernel = shaders->TryGetKernel("shade<float, 4>");
  if (!kernel) return 2;
  const culaunch::Status launched = kernel->TryLaunch({{1}, {32}}, nullptr);
  if (!launched) return 3;
  // A shader that its author got wrong is a message in the console, and no end of the engine.
  culaunch::Jit jit;
  const auto wrong = jit.TryModule("__global__ void k() { oops; }");
  std::printf("%s\n", wrong.what());
  return RunPlugin(words[1], std::atoi(words[3])) && RunPlugin(words[2], 1) ? 0 : 4;
}
