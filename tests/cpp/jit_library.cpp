// A library for a Python process: what it is given as source it compiles, and launches with arrays.
#include <culaunch/culaunch.h>
#include <culaunch/jit.h>

#include <string>

// Scale an array on the device that is chosen; empty, or what went wrong.
extern "C" const char* Scale(const char* source, const char* kernel, float* y, const float* x,
                             float a, int n, const char* nvrtc) {
  static std::string said;
  try {
    culaunch::JitOptions options;
    options.nvrtc = nvrtc;
    static auto& jit = *new culaunch::Jit(options);
    const size_t bytes = static_cast<size_t>(n) * sizeof(float);
    culaunch::NoteArray(y, bytes);
    culaunch::NoteArray(x, bytes);
    culaunch::Arguments arguments;
    arguments.AddAll(y, x, a, n);
    jit.Module(source, {kernel}).GetKernel(kernel).Launch({{1}, {64}}, arguments);
    return "";
  } catch (const culaunch::Error& error) {
    said = error.what();
    return said.c_str();
  }
}
