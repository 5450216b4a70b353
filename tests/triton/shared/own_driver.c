// What Triton's launcher, which is C that it compiles for each signature, asks libcuda for: the
// functions of another driver, given by `set_functions`.
#include <stdint.h>
#include <string.h>

static int (*launch)(const void*, void*, void**, void**);
static int (*get_context)(void**);
static int (*retain)(void**, int);
static int (*push_context)(void*);
static int (*get_text)(int, const char**);

void set_functions(void** functions) {
  launch = functions[0];
  get_context = functions[1];
  retain = functions[2];
  push_context = functions[3];
  get_text = functions[4];
}

int cuLaunchKernelEx(const void* config, void* function, void** params, void** extra) {
  return launch(config, function, params, extra);
}
int cuCtxGetCurrent(void** context) { return get_context(context); }
int cuCtxSetCurrent(void* context) { return push_context(context); }
int cuDevicePrimaryCtxRetain(void** context, int device) { return retain(context, device); }
int cuGetErrorString(int code, const char** text) { return get_text(code, text); }
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) { return 0; }
// All memory is the device's.
int cuPointerGetAttribute(void* out, int attribute, uint64_t address) {
  memcpy(out, &address, sizeof address);
  return 0;
}
