// A library for a Python process: what it is given as source it compiles, and launches with arrays.
#include <culaunch/culaunch.h>
#include <culaunch/jit.h>

#include <string>

static culaunch::Jit& TheJit(const char* nvrtc) {
  culaunch::JitOptions options;
  options.nvrtc = nvrtc;
  static auto& jit = *new culaunch::Jit(options);
  return jit;
}

// Scale an array on the device that is chosen; empty, or what went wrong.
extern "C" const char* Scale(const char* source, const char* kernel, float* y, const float* x,
                             float a, int n, const char* nvrtc) {
  static std::string said;
  try {
    culaunch::Jit& jit = TheJit(nvrtc);
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

// The same by two images of LTO-IR, linked for the device that is chosen.
extern "C" const char* ScaleLinked(float* y, const float* x, float a, int n, const char* nvrtc) {
  static std::string said;
  const auto do_it = [&]() -> culaunch::Status {
    culaunch::Jit& jit = TheJit(nvrtc);
    culaunch::CompileOptions options;
    options.lto = true;
    const auto caller = jit.TryCompile(
        "extern \"C\" __device__ float times(float x, float a);\n"
        "template <class T> __global__ void scale(T* y, const T* x, T a, int n) {\n"
        "  if (threadIdx.x < n) y[threadIdx.x] = times(x[threadIdx.x], a);\n"
        "}",
        {"scale<float>"}, options);
    if (!caller) return caller.error();
    const auto callee = jit.TryCompile(
        "extern \"C\" __device__ float times(float x, float a) { return a * x; }", {}, options);
    if (!callee) return callee.error();
    const auto linked = jit.TryLink({*caller, *callee});
    if (!linked) return linked.error();
    const size_t bytes = static_cast<size_t>(n) * sizeof(float);
    culaunch::NoteArray(y, bytes);
    culaunch::NoteArray(x, bytes);
    const auto& module = *new culaunch::Module(linked->Load());
    const auto kernel = module.TryGetKernel("scale<float>");
    if (!kernel) return kernel.error();
    return kernel->TryLaunch({{1}, {64}}, y, x, a, n);
  };
  const culaunch::Status status = do_it();
  said = status.what();
  return said.c_str();
}
