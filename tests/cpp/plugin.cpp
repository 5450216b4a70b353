// A plugin that is loaded and unloaded again and again: see test_reload.cpp.
#include "culaunch/culaunch.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

static const char kPtx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry step()\n{ ret; }\n";
CULAUNCH_EMBED_CUBIN_FROM_BYTES(kernels, kPtx);

EXPORT int plugin_run() {
  try {
    CULAUNCH_GET_KERNEL(kernels, "step")({1, 32});
    return 0;
  } catch (const culaunch::Error&) {
    return 1;
  }
}

// The last call before dlclose.
EXPORT void plugin_close() { culaunch::UnloadLibrary(); }
