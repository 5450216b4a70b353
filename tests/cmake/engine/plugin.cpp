#include <culaunch/culaunch.h>

CULAUNCH_EMBED_CUBIN(plugin_kernels);

extern "C" __attribute__((visibility("default"))) bool Run() {
  bool ran = false;
  {
    const auto module = CULAUNCH_TRY_SHARE_MODULE(plugin_kernels);
    if (!module) return false;
    const auto kernel = (*module)->TryGetKernel("plugin");
    ran = kernel.ok() && kernel->TryLaunch({{1}, {32}}, nullptr, 7).ok();
  }
  culaunch::UnloadLibrary();  // the last use before dlclose
  return ran;
}
