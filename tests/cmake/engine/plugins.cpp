#include "plugins.h"

#include <dlfcn.h>

#include <cstdio>

bool RunPlugin(const char* path, int times) {
  for (int i = 0; i < times; ++i) {
    void* const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return false;
    }
    using Run = bool();
    const bool ran = reinterpret_cast<Run*>(dlsym(plugin, "Run"))();
    dlclose(plugin);
    if (!ran || dlopen(path, RTLD_NOW | RTLD_NOLOAD) != nullptr) return false;
  }
  return true;
}
